package action

import "fmt"

// count writes "1 Pod", "3 Pods".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func countVerb(n int, noun, one, many string) string {
	if n == 1 {
		return count(n, noun) + " " + one
	}
	return count(n, noun) + " " + many
}

func replaced(n int) string { return count(n, "Pod") + " replaced" }

func stays(n int) string {
	if n == 1 {
		return "stays"
	}
	return "stay"
}

func holds(n int) string {
	if n == 1 {
		return "holds"
	}
	return "hold"
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func itOrThem(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

func podOrPods(n int) string {
	if n == 1 {
		return "Pod"
	}
	return "Pods"
}
