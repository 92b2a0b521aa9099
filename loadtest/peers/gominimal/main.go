// Command gominimal is a webhook written by hand: encoding/json, and only the fields that are needed.
package main

import (
	"encoding/json"
	"strconv"

	"vacancy.test/loadtest/peers/serving"
)

type container struct {
	Resources struct {
		Requests map[string]string `json:"requests"`
	} `json:"resources"`
}

type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    *struct {
		UID    string `json:"uid"`
		Object struct {
			Spec struct {
				Containers     []container `json:"containers"`
				InitContainers []container `json:"initContainers"`
			} `json:"spec"`
		} `json:"object"`
	} `json:"request,omitempty"`
	Response *response `json:"response,omitempty"`
}

type response struct {
	UID     string  `json:"uid"`
	Allowed bool    `json:"allowed"`
	Status  *status `json:"status,omitempty"`
}

type status struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func main() {
	serving.Run(func(body []byte, free serving.Counts) ([]byte, error) {
		var in review
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		spec := in.Request.Object.Spec
		asked := serving.Counts{}
		for _, each := range spec.Containers {
			add(asked, each)
		}
		for _, each := range spec.InitContainers {
			one := serving.Counts{}
			add(one, each)
			asked.Raise(one)
		}
		out := response{UID: in.Request.UID, Allowed: true}
		if message := serving.Refusal(asked, free); message != "" {
			out.Allowed, out.Status = false, &status{403, "Forbidden", message}
		}
		return json.Marshal(review{APIVersion: in.APIVersion, Kind: in.Kind, Response: &out})
	})
}

func add(counts serving.Counts, each container) {
	for name, quantity := range each.Resources.Requests {
		count, _ := strconv.ParseInt(quantity, 10, 64) // an extended resource is a whole number
		counts.Add(name, count)
	}
}
