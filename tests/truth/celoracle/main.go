// Celoracle says which devices a CEL selector matches, by the code that the scheduler evaluates it with.
//
// It reads questions from standard input, one JSON object per line, and answers each with a line: for every device
// "true", "false" or "error" (a run-time error, after which the scheduler gives up), or once "compile".
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

type question struct {
	Expression string   `json:"expression"`
	Devices    []device `json:"devices"`
}

type device struct {
	Driver                   string                                                    `json:"driver"`
	AllowMultipleAllocations bool                                                      `json:"allowMultipleAllocations"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
}

func main() {
	decoder := json.NewDecoder(bufio.NewReader(os.Stdin))
	for decoder.More() {
		var asked question
		if err := decoder.Decode(&asked); err != nil {
			log.Fatal(err)
		}
		fmt.Println(strings.Join(answers(asked), " "))
	}
}

// List attributes are an alpha feature of 1.37; without them such a device cannot be published.
var compiler = cel.GetCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})

func answers(asked question) []string {
	compiled := compiler.CompileCELExpression(asked.Expression, cel.Options{DisableCostEstimation: true})
	if compiled.Error != nil {
		return []string{"compile"}
	}
	said := make([]string, len(asked.Devices))
	for i, each := range asked.Devices {
		matches, _, err := compiled.DeviceMatches(context.Background(), cel.Device{
			Driver:                   each.Driver,
			AllowMultipleAllocations: &each.AllowMultipleAllocations,
			Attributes:               each.Attributes,
			Capacity:                 each.Capacity,
		})
		if err != nil {
			said[i] = "error"
		} else {
			said[i] = fmt.Sprint(matches)
		}
	}
	return said
}
