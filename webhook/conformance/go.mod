module github.com/runnel-go/runnel/webhook/conformance

go 1.25.0

replace github.com/runnel-go/runnel => ../..

require (
	github.com/runnel-go/runnel v0.0.0
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
)
