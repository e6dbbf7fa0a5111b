package keys

// A Role is the purpose of a user of the server. Roles can be joined by |.
type Role uint8

const (
	Produce Role = 1 << iota // sends, at once or for later
	Work                     // runs processors and tasks, which may send
	Watch                    // looks: status, top, tail, metrics of others, the dashboard without actions
	Operate                  // also changes: positions, rules, what was moved aside
)

// Everyone is all roles.
const Everyone = Produce | Work | Watch | Operate

var roleNames = map[Role]string{Produce: "producer", Work: "worker", Watch: "watcher", Operate: "operator"}

// Roles returns the roles by name.
func Roles() map[string]Role {
	roles := map[string]Role{}
	for r, name := range roleNames {
		roles[name] = r
	}
	return roles
}

// String returns the name of the role.
func (r Role) String() string { return roleNames[r] }

// Indefinite returns the name of the role with its article: "an operator".
func (r Role) Indefinite() string {
	if r == Operate {
		return "an " + r.String()
	}
	return "a " + r.String()
}
