package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runnel-go/runnel/internal/extension"
)

// completePatience bounds how long a user who pressed a key waits for names.
const completePatience = time.Second

// takeParts are the commands that take a part of an extension where they take a processor.
var takeParts = []string{"pause", "resume", "block", "unblock", "parked", "dead"}

// completeArgument is the completion of the first argument of a command: streams, processors, tables and parts of
// extensions, by the command's usage. A shell shows no errors.
func (p *program) completeArgument(command *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	c := &call{command, args}
	usage := strings.TrimPrefix(c.usage(), "[")
	if !strings.HasPrefix(usage, "STREAM") {
		return nil, cobra.ShellCompDirectiveDefault // files
	}
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	p.quietly(c, func(ctx context.Context, s *session) {
		names, _ := s.client.Streams(ctx)
		for _, stream := range names {
			m, ok, _ := s.client.LoadMeta(ctx, stream)
			if ok && !strings.HasPrefix(usage, "STREAM/") {
				found = append(found, stream)
			}
			for name := range m.Tables {
				if strings.Contains(usage, "/TABLE") {
					found = append(found, stream+"/"+name)
				}
			}
			for _, name := range m.Processors {
				if strings.Contains(usage, "/PROCESSOR") {
					found = append(found, stream+"/"+name)
				}
			}
		}
		top := command
		for top.HasParent() && top.Parent().HasParent() {
			top = top.Parent()
		}
		if slices.Contains(takeParts, top.Name()) && len(p.extensions()) > 0 {
			all, _ := extension.Targets(ctx, s.app, s.client, "")
			for _, t := range all {
				found = append(found, t.Owner+"/"+t.Part)
			}
		}
	})
	found = slices.DeleteFunc(found, func(word string) bool { return !strings.HasPrefix(word, typed) })
	slices.Sort(found)
	return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
}

// completeHidden is the completion of the groups that the library leaves out, as they are hidden.
func (p *program) completeHidden(root *cobra.Command, args []string, typed string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
	hidden := slices.DeleteFunc(slices.Clone(root.Commands()), func(c *cobra.Command) bool { return !c.Hidden })
	p.reveal(&call{root, args})
	for _, c := range hidden {
		if !c.Hidden && strings.HasPrefix(c.Name(), typed) {
			found = append(found, c.Name())
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
