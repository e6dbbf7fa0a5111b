package conformance

const stoppedArgument = "runnel-stopped-worker"

func stoppedMain() int { return 0 }
