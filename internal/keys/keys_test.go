package keys

import "testing"

func TestNames(t *testing.T) {
	plain, tagged := Keys{"example", Standalone}, Keys{"example", Cluster}
	tests := []struct {
		name          string
		of            func(Keys) string
		plain, tagged string
	}{
		{"partition", func(k Keys) string { return k.Partition("orders", 3) }, "__strm:example.orders.3", "__strm:{example.3}.orders"},
		{"delayed", func(k Keys) string { return k.Delayed("orders", 3).Due }, "__due:example.orders.3", "__due:{example.3}.orders"},
		{"its versions", func(k Keys) string { return k.Delayed("orders", 3).Versions }, "__duever:example.orders.3", "__duever:{example.3}.orders"},
		{"its data", func(k Keys) string { return k.Delayed("orders", 3).Data }, "__duedata:example.orders.3", "__duedata:{example.3}.orders"},
		{"its sequence", func(k Keys) string { return k.Delayed("orders", 3).Sequence }, "__dueseq:example.orders.3", "__dueseq:{example.3}.orders"},
		{"lock", func(k Keys) string { return k.Lock("orders", "printer", 3) }, "__lock:example.orders.printer.3", "__lock:{example.3}.orders.printer"},
		{"ownership", func(k Keys) string { return k.Ownership("orders", "printer", 3) }, "__own:example.orders.printer.3", "__own:{example.3}.orders.printer"},
		{"once", func(k Keys) string { return k.Once("orders", 3, "a.b") }, "__id:example.orders.3:a.b", "__id:{example.3}.orders:a.b"},
		{"parked events", func(k Keys) string { return k.Parked("orders", "printer", 3) }, "__parked:example.orders.printer.3", "__parked:{example.3}.orders.printer"},
		{"retries", func(k Keys) string { return k.Retry("orders", "printer", 3) }, "__retry:example.orders.printer.3", "__retry:{example.3}.orders.printer"},
		{"dead letters", func(k Keys) string { return k.Dead("orders", "printer", 3) }, "__dead:example.orders.printer.3", "__dead:{example.3}.orders.printer"},
		{"membership", func(k Keys) string { return k.Membership("orders", "printer") }, "__memb:example.orders.printer", "__memb:{example}.orders.printer"},
		{"control", func(k Keys) string { return k.Control("orders", "printer") }, "__ctrl:example.orders.printer", "__ctrl:{example}.orders.printer"},
		{"admin lock", func(k Keys) string { return k.AdminLock("orders", "printer") }, "__lock:example.orders.printer.admin", "__lock:{example}.orders.printer.admin"},
		{"beat", func(k Keys) string { return k.Beat("orders", "printer", "x1") }, "__beat:example.orders.printer.x1", "__beat:{example}.orders.printer.x1"},
		{"audit", func(k Keys) string { return k.Audit() }, "__audit:example", "__audit:{example}"},
		{"leader", func(k Keys) string { return k.Leader() }, "__leader:example", "__leader:{example}"},
		{"older leader", func(k Keys) string { return k.OldLeader() }, "__lead:example", "__lead:{example}"},
		{"streams", func(k Keys) string { return k.Streams() }, "__meta:example", "__meta:{example}"},
		{"meta", func(k Keys) string { return k.Meta("orders") }, "__meta:example.orders", "__meta:{example}.orders"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.of(plain); got != tt.plain {
				t.Errorf("standalone: got %q, want %q", got, tt.plain)
			}
			if got := tt.of(tagged); got != tt.tagged {
				t.Errorf("cluster: got %q, want %q", got, tt.tagged)
			}
		})
	}
}
