package store

import "testing"

// What was moved aside behind a pending entry stays known though the next owner reads and moves, or acks, what came before it.
func TestAsideSurvivesAPartOfTheRead(t *testing.T) {
	both(t, func(t *testing.T, e *env) {
		for i, tt := range []struct {
			name string
			do   func(p Partition)
		}{
			{"parked", func(p Partition) { e.park(p, carol, "1-1") }},
			{"dead", func(p Partition) { e.bury(p, carol, "1-1") }},
			{"acked one, parked one", func(p Partition) { e.read(p, carol, 1); e.ack(p, carol, "1-1"); e.park(p, carol, "2-2") }},
			{"read all, parked the first two", func(p Partition) { e.read(p, carol, 5); e.park(p, carol, "1-1", "2-2") }},
		} {
			t.Run(tt.name, func(t *testing.T) {
				p := e.Partition("orders", "printer", i)
				e.begin(p, 6) // alice has read 1-1 to 6-6
				e.park(p, alice, "3-3")
				e.bury(p, alice, "6-6") // dead letters
				e.own(p, tenure(carol, 1))
				e.read(p, carol, 1)
				tt.do(p)
				pos := e.own(p, tenure(bob, 1))
				equal(t, "aside", pos.SetAside, []string{"3-3", "6-6"})
			})
		}
	})
}
