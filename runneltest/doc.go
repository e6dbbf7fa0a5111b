// Package runneltest tests processors: one of them without Redis (Process,
// Events), or several workers of an app in fake time on an embedded Redis (Sim).
//
//	func TestPrinter(t *testing.T) {
//		got := runneltest.Process(t, orders, "printer", Order{"ada", 1}, Order{"bob", 2})
//		if got.Err != nil || len(got.Acked) != 2 {
//			t.Errorf("%+v", got)
//		}
//	}
package runneltest
