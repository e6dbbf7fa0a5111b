package schedule

import (
	"slices"

	ischedule "github.com/runnel-go/runnel/internal/schedule"
)

// remember asks for an operation that restores what the server of this partition has forgotten while those of others have not: the
// definitions here, or, of partition 0, the numbers of operations.
func (o *owner) remember() error {
	ledger := o.s.calls.Ledger()
	last, known, err := ledger.Numbers(o.ctx, o.s.partitions())
	if err != nil {
		return err
	}
	behind := o.partition == 0 && slices.Max(known) > last
	if !behind && known[o.partition] > 0 {
		return nil
	}
	lacks, err := o.lacks()
	if err != nil || !behind && !lacks {
		return err
	}
	o.log.Warn("the server has forgotten jobs")
	_, err = ledger.Submit(o.ctx, &ischedule.Op{
		Number: slices.Max(known), ID: "restore " + o.fence, Kind: ischedule.OpRestore, By: "owner", At: o.own.Now().UnixMilli(),
	})
	return err
}

// lacks reports whether a partition that knows nothing ought to know something of a job that was applied.
func (o *owner) lacks() (bool, error) {
	all, err := o.s.calls.Ledger().Jobs(o.ctx)
	if err != nil {
		return false, err
	}
	for name, j := range all {
		if op, err := o.s.calls.Ledger().Op(o.ctx, j.Rev); err != nil {
			return false, err
		} else if op != nil && op.Done == 0 {
			delete(all, name)
		}
	}
	def := ischedule.Compile(all, o.s.partitions(), o.s.partition, 0)[o.partition]
	return len(def.Fields)+len(def.Rules) > 0, nil
}
