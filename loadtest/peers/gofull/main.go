// Command gofull is a webhook that decodes the whole Pod, as those on controller-runtime do.
//
// It is a generous peer: controller-runtime also looks for the kind in a pass of its own, logs and counts.
package main

import (
	"encoding/json"

	admission "k8s.io/api/admission/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"vacancy.test/loadtest/peers/serving"
)

func main() {
	serving.Run(func(body []byte, free serving.Counts) ([]byte, error) {
		var review admission.AdmissionReview
		if err := json.Unmarshal(body, &review); err != nil {
			return nil, err
		}
		var pod core.Pod
		if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
			return nil, err
		}
		asked := serving.Counts{}
		for _, each := range pod.Spec.Containers {
			add(asked, each)
		}
		for _, each := range pod.Spec.InitContainers {
			one := serving.Counts{}
			add(one, each)
			asked.Raise(one)
		}
		review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if message := serving.Refusal(asked, free); message != "" {
			review.Response.Allowed = false
			review.Response.Result = &meta.Status{Code: 403, Reason: meta.StatusReasonForbidden, Message: message}
		}
		review.Request = nil
		return json.Marshal(review)
	})
}

func add(counts serving.Counts, each core.Container) {
	for name, quantity := range each.Resources.Requests {
		counts.Add(string(name), quantity.Value())
	}
}
