package redistest

import "testing"

// A killed master is replaced by its replica, and a replica of that when it is back.
func TestWatchedFailsOver(t *testing.T) {
	w := StartWatched(t, 1, "--requirepass", "secret")
	old := w.Servers()[0]
	if master := w.Master(); master != old {
		t.Fatalf("the sentinels call %v the master", master)
	}
	old.Kill()
	master := w.WaitFailover(old)
	if master != w.Servers()[1] {
		t.Fatalf("%s was promoted", master.Addr())
	}
	old.Restart()
	w.WaitReplica(old)
	if got := old.role(); got != "slave" {
		t.Errorf("the old master says that it is a %q", got)
	}
	if got := w.Replicas(); len(got) != 1 || got[0] != old {
		t.Errorf("%d replicas", len(got))
	}
}

// A frozen master is replaced, too, and becomes a replica when it goes on.
func TestWatchedFrozenMaster(t *testing.T) {
	w := StartWatched(t, 2)
	old := w.Master()
	old.Freeze()
	if master := w.WaitFailover(old); master == old {
		t.Fatal("the frozen server is still called the master")
	}
	old.Thaw()
	w.WaitReplica(old)
}
