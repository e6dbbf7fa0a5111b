package stage

// Takes returns how often owners of the set have asked Redis for visits.
func Takes[T any](s *Set[T]) int64 { return s.count.takes.Load() }

// Fenced returns how many calls of former owners Redis has refused.
func Fenced[T any](s *Set[T]) int64 { return s.count.fenced.Load() }

// Conflicts returns how many changes of the set's stages met another one.
func Conflicts[T any](s *Set[T]) (n int64) {
	for _, one := range s.stages {
		n += one.count.by[conflict].Load()
	}
	return n
}
