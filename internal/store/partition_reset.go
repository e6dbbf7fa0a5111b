package store

import "context"

// Reset sets a processor's position in a partition that the ownership has just taken over:
// everything up to the entry ID to, "$" for the last one, counts as done, and everything behind it
// as undelivered. It returns the new floor, which is never behind the last entry; the next takeover
// begins at the group that is left. In the same step it removes the rows of these tables, if there are any, and then also
// the parked events that come again: they would count twice. It returns ErrFenced if the partition is not the ownership's,
// and may be repeated.
func (c Operator) Reset(ctx context.Context, p Partition, t Claim, to string, clear ...Table) (floor string, err error) {
	err = persist(ctx, func() error {
		var err error
		floor, err = resetScript.Run(ctx, c.NoRetry, appendTables([]string{p.Log, p.Lock, p.Own, p.Parked, p.Retry}, clear),
			GroupName(p.Processor, t.Executor), t.LockValue(), to).Text()
		return classify(err)
	})
	return floor, p.wrap("reset", err)
}
