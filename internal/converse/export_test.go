package converse

// For the tests that hear with a provider's ears, which cannot be inside the package.
var (
	Fewer            = fewer
	HumanGreetings   = humanGreetings
	MachineGreetings = machineGreetings
)
