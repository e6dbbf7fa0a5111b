package schedule

import (
	"slices"

	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

// remember restores what the server of this partition has forgotten while those of others have not: the definitions here, and of
// partition 0 the numbers of operations, which go on behind those that others know.
func (o *owner) remember() error {
	ledger := o.s.calls.Ledger()
	last, known, err := ledger.Numbers(o.ctx, o.s.partitions())
	if err != nil {
		return err
	}
	if o.partition == 0 && slices.Max(known) > last {
		if _, err := ledger.Submit(o.ctx, &ischedule.Op{Number: slices.Max(known), ID: "restore " + o.fence, Kind: ischedule.OpRestore, By: "owner"}); err != nil {
			return err
		}
	}
	if known[o.partition] > 0 {
		return nil
	}
	all, err := ledger.Jobs(o.ctx)
	if err != nil {
		return err
	}
	rev := int64(0)
	for _, j := range all {
		rev = max(rev, j.Rev)
	}
	def := ischedule.Compile(all, o.s.partitions(), o.s.partition, o.own.Now().UnixMilli())[o.partition]
	if len(def.Fields)+len(def.Rules) > 0 {
		o.log.Warn("the server has forgotten jobs")
	}
	def.Fields["known"] = "1" // until then nothing is applied to the partition
	return o.s.calls.Define(o.ctx, o.partition, rev, ischedule.NewDefinition(), def, true)
}
