// Allocator says where the claims of a pod could be allocated now, by the code that kube-scheduler allocates with.
//
// It reads questions from standard input, one JSON object per line, and answers each with a line. Only what decides
// about devices is looked at, and which nodes the pod can get to; not its CPU, memory, affinity or priority.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// question is a cluster and a pod.
type question struct {
	// Objects of the cluster, as the API server prints them; of kinds not looked at, too.
	Objects []json.RawMessage `json:"objects"`
	// ClassEvents are what the scheduler has heard of device classes, oldest first.
	ClassEvents []classEvent `json:"classEvents"`
	// Freed are claims, as namespace/name, that count as deallocated already.
	Freed []string `json:"freed"`
	// Claimants are the classes that an extended resource name has to be asked of, where that is not just the one
	// the scheduler takes.
	Claimants map[corev1.ResourceName][]string `json:"claimants"`
	Pod       corev1.Pod                       `json:"pod"`
}

// classEvent is one watch event.
type classEvent struct {
	Type   string                   `json:"type"`
	Object *resourceapi.DeviceClass `json:"object"`
}

// answer is what the scheduler would make of it.
type answer struct {
	// Nodes the pod could be bound to.
	Nodes []string `json:"nodes"`
	// Error is what aborts every attempt to schedule the pod.
	Error string `json:"error,omitempty"`
	// Waiting is why the pod is not tried at all.
	Waiting string `json:"waiting,omitempty"`
	// Asks are the pod's requests, each taken for itself.
	Asks []ask `json:"asks"`
}

// ask is one extended resource name or one request of a claim.
type ask struct {
	Name         string        `json:"name"`
	Alternatives []alternative `json:"alternatives"`
}

// alternative is one way to meet an ask, tried with a single device.
type alternative struct {
	Class string `json:"class"`
	// Matching is the number of devices in usable pools that match class and request; -1: not every selector has an
	// answer.
	Matching int `json:"matching"`
	// Admin says that devices in use will do.
	Admin bool `json:"admin,omitempty"`
	// Reached says that one device could be allocated on a node the pod can get to, Anywhere: on any node, or on
	// one that does not exist but has slices.
	Reached  bool `json:"reached"`
	Anywhere bool `json:"anywhere"`
}

func main() {
	decoder := json.NewDecoder(bufio.NewReader(os.Stdin))
	encoder := json.NewEncoder(os.Stdout)
	for decoder.More() {
		var asked question
		if err := decoder.Decode(&asked); err != nil {
			log.Fatal(err)
		}
		known, err := newCluster(asked)
		if err != nil {
			log.Fatal(err)
		}
		if err := encoder.Encode(known.answer(&asked.Pod)); err != nil {
			log.Fatal(err)
		}
	}
}
