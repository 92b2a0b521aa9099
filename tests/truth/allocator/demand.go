package main

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
)

// userClaims are the claims that the pod names, with those that would be made of templates. The error says what the
// pod has to wait for (dynamicresources.foreachPodResourceClaim, validateDeviceClass).
func (c *cluster) userClaims(pod *corev1.Pod) ([]*resourceapi.ResourceClaim, error) {
	var claims []*resourceapi.ResourceClaim
	for _, entry := range pod.Spec.ResourceClaims {
		claim, err := c.userClaim(pod, entry)
		if err != nil {
			return nil, err
		}
		if claim.Status.Allocation == nil {
			for _, request := range claim.Spec.Devices.Requests {
				for _, option := range options(request) {
					if _, err := c.classes.Get(option.DeviceClassName); err != nil {
						return nil, err
					}
				}
			}
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

func (c *cluster) userClaim(pod *corev1.Pod, entry corev1.PodResourceClaim) (*resourceapi.ResourceClaim, error) {
	if entry.ResourceClaimName != nil {
		claim := c.claims[pod.Namespace+"/"+*entry.ResourceClaimName]
		if claim == nil || claim.DeletionTimestamp != nil {
			return nil, fmt.Errorf("claim %s is missing or being deleted", *entry.ResourceClaimName)
		}
		return claim, nil
	}
	template := c.templates[pod.Namespace+"/"+ptr.Deref(entry.ResourceClaimTemplateName, "")]
	if template == nil {
		return nil, fmt.Errorf("the template of %s is missing", entry.Name)
	}
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: entry.Name}, Spec: template.Spec.Spec}, nil
}

// options are the ways to meet a request, in one form.
func options(request resourceapi.DeviceRequest) []resourceapi.ExactDeviceRequest {
	if request.Exactly != nil {
		return []resourceapi.ExactDeviceRequest{*request.Exactly}
	}
	var found []resourceapi.ExactDeviceRequest
	for _, sub := range request.FirstAvailable {
		found = append(found, resourceapi.ExactDeviceRequest{
			DeviceClassName: sub.DeviceClassName, Selectors: sub.Selectors, Tolerations: sub.Tolerations,
		})
	}
	return found
}

// extendedResources are the names of the pod that might stand for devices (schedutil.IsDRAExtendedResourceName).
func extendedResources(pod *corev1.Pod) map[corev1.ResourceName]int64 {
	found := map[corev1.ResourceName]int64{}
	for name, amount := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		text := string(name)
		extended := strings.Contains(text, "/") && !strings.Contains(text, "kubernetes.io/")
		if !amount.IsZero() && (extended || strings.HasPrefix(text, resourceapi.ResourceDeviceClassPrefix)) {
			found[name] = amount.Value()
		}
	}
	return found
}

// nodeDemand is what of the pod's extended resources a node has to serve by devices: the special claim, or nil. The
// second result says that the node can serve the rest (filterExtendedResources, NodeResourcesFit).
func (c *cluster) nodeDemand(pod *corev1.Pod, node *corev1.Node) (*resourceapi.ResourceClaim, bool) {
	var requests []resourceapi.DeviceRequest
	for name, amount := range extendedResources(pod) {
		class := c.names.GetDeviceClass(name)
		plugin := node.Status.Allocatable[name]
		if class != nil && plugin.IsZero() {
			requests = append(requests, deviceRequests(pod, name, class.Name)...)
		} else if amount > plugin.Value()-c.used(node, name) {
			return nil, false
		}
	}
	if requests == nil {
		return nil, true
	}
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "extended-resources"},
		Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: requests}},
	}, true
}

func (c *cluster) used(node *corev1.Node, name corev1.ResourceName) int64 {
	var sum int64
	for _, pod := range c.pods {
		if pod.Spec.NodeName == node.Name && pod.Status.Phase != "Succeeded" && pod.Status.Phase != "Failed" {
			sum += extendedResources(pod)[name]
		}
	}
	return sum
}

// deviceRequests are those the scheduler makes of one name (extendeddynamicresources.createRequestsAndMappings): one
// for each container that lasts, and one for the init container that needs most beyond what later ones give it.
func deviceRequests(pod *corev1.Pod, name corev1.ResourceName, class string) []resourceapi.DeviceRequest {
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	lasting := make([]int64, len(containers))
	var short int64
	for i, container := range slices.Backward(containers) {
		amount := container.Resources.Requests[name]
		count, ok := amount.AsInt64()
		if !ok {
			continue
		}
		sidecar := ptr.Deref(container.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
		if i >= len(pod.Spec.InitContainers) || sidecar {
			lasting[i] = count
			continue
		}
		for _, later := range lasting[i:] {
			count -= later
		}
		short = max(short, count)
	}
	var requests []resourceapi.DeviceRequest
	for _, count := range append(lasting, short) {
		if count > 0 {
			requests = append(requests, resourceapi.DeviceRequest{
				Name: fmt.Sprintf("%s-%d", class, len(requests)),
				Exactly: &resourceapi.ExactDeviceRequest{
					DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
				},
			})
		}
	}
	return requests
}
