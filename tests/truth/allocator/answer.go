package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

func (c *cluster) answer(pod *corev1.Pod) answer {
	said := answer{Nodes: []string{}, Asks: c.asks(pod)}
	claims, err := c.userClaims(pod)
	if err != nil {
		said.Waiting = err.Error()
		return said
	}
	for _, node := range c.nodes {
		if !reaches(pod, node) || !availableOn(claims, node) {
			continue
		}
		special, fits := c.nodeDemand(pod, node)
		if !fits {
			continue
		}
		toAllocate := slices.DeleteFunc(slices.Clone(claims), isAllocated)
		if special != nil {
			toAllocate = append(toAllocate, special)
		}
		results, err := c.allocator.Allocate(context.Background(), node, toAllocate)
		if err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode) {
			said.Error = err.Error()
		} else if err == nil && len(results) == len(toAllocate) {
			said.Nodes = append(said.Nodes, node.Name)
		}
	}
	return said
}

// reaches is what the plugins NodeUnschedulable, TaintToleration and NodeAffinity say.
func reaches(pod *corev1.Pod, node *corev1.Node) bool {
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append(slices.Clone(taints), corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: "NoSchedule"})
	}
	blocking := func(taint *corev1.Taint) bool { return taint.Effect == "NoSchedule" || taint.Effect == "NoExecute" }
	_, kept := scheduling.FindMatchingUntoleratedTaint(klog.Background(), taints, pod.Spec.Tolerations, blocking, false)
	matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	return !kept && matches && err == nil
}

func isAllocated(claim *resourceapi.ResourceClaim) bool { return claim.Status.Allocation != nil }

func availableOn(claims []*resourceapi.ResourceClaim, node *corev1.Node) bool {
	for _, claim := range claims {
		if isAllocated(claim) && claim.Status.Allocation.NodeSelector != nil {
			selector, err := nodeaffinity.NewNodeSelector(claim.Status.Allocation.NodeSelector)
			if err != nil || !selector.Match(node) {
				return false
			}
		}
	}
	return true
}

// asks are the pod's requests, each taken for itself and with a single device.
func (c *cluster) asks(pod *corev1.Pod) []ask {
	found := []ask{}
	for _, name := range slices.Sorted(maps.Keys(extendedResources(pod))) {
		each := ask{Name: string(name)}
		classes := c.claimants[name]
		if class := c.names.GetDeviceClass(name); class != nil && !slices.Contains(classes, class.Name) {
			classes = append(slices.Clone(classes), class.Name)
		}
		for _, class := range classes {
			option := resourceapi.ExactDeviceRequest{DeviceClassName: class}
			each.Alternatives = append(each.Alternatives, c.alternative(pod, option))
		}
		if len(classes) > 0 {
			found = append(found, each)
		}
	}
	for _, entry := range pod.Spec.ResourceClaims {
		claim, err := c.userClaim(pod, entry)
		if err != nil || isAllocated(claim) {
			continue
		}
		for _, request := range claim.Spec.Devices.Requests {
			each := ask{Name: entry.Name + "/" + request.Name}
			for _, option := range options(request) {
				each.Alternatives = append(each.Alternatives, c.alternative(pod, option))
			}
			found = append(found, each)
		}
	}
	return found
}

// alternative tries a single device. Admin access would take what is taken, a capacity only part of it: both are left.
func (c *cluster) alternative(pod *corev1.Pod, option resourceapi.ExactDeviceRequest) alternative {
	said := alternative{
		Class: option.DeviceClassName, Matching: c.matching(option), Admin: ptr.Deref(option.AdminAccess, false),
	}
	option.AllocationMode, option.Count = resourceapi.DeviceAllocationModeExactCount, 1
	option.AdminAccess, option.Capacity = nil, nil
	claim := &resourceapi.ResourceClaim{
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "one", Exactly: &option}},
		}},
	}
	for _, node := range slices.Concat(c.nodes, c.ghosts()) {
		results, err := c.allocator.Allocate(context.Background(), node, []*resourceapi.ResourceClaim{claim})
		if err == nil && len(results) == 1 {
			said.Anywhere = true
			said.Reached = said.Reached || slices.Contains(c.nodes, node) && reaches(pod, node)
		}
	}
	return said
}

// ghosts are nodes that do not exist, though slices are for them: by name, or by labels.
func (c *cluster) ghosts() []*corev1.Node {
	existing := sets.New("")
	for _, node := range c.nodes {
		existing.Insert(node.Name)
	}
	var found []*corev1.Node
	add := func(name *string) {
		if !existing.Has(ptr.Deref(name, "")) {
			existing.Insert(*name)
			found = append(found, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: *name}})
		}
	}
	for _, slice := range c.slices {
		add(slice.Spec.NodeName)
		for _, device := range slice.Spec.Devices {
			add(device.NodeName)
		}
		if slice.Spec.NodeSelector != nil {
			found = append(found, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: selected(slice.Spec.NodeSelector)}})
		}
	}
	return found
}

// selected are labels that a selector of the simplest form selects.
func selected(selector *corev1.NodeSelector) map[string]string {
	labels := map[string]string{}
	for _, term := range selector.NodeSelectorTerms {
		for _, wanted := range term.MatchExpressions {
			if wanted.Operator == corev1.NodeSelectorOpIn {
				labels[wanted.Key] = wanted.Values[0]
			}
		}
	}
	return labels
}

func (c *cluster) matching(option resourceapi.ExactDeviceRequest) int {
	class, err := c.classes.Get(option.DeviceClassName)
	if err != nil {
		return 0
	}
	count := 0
	for _, slice := range c.usable() {
		for _, device := range slice.Spec.Devices {
			matches, err := matchesAll(slices.Concat(class.Spec.Selectors, option.Selectors), slice.Spec.Driver, device)
			if err != nil {
				return -1
			}
			if matches {
				count++
			}
		}
	}
	return count
}

// usable are the slices of complete pools, of their newest generation.
func (c *cluster) usable() []*resourceapi.ResourceSlice {
	type pool struct{ driver, name string }
	newest := map[pool][]*resourceapi.ResourceSlice{}
	for _, slice := range c.slices {
		id := pool{slice.Spec.Driver, slice.Spec.Pool.Name}
		known := newest[id]
		switch {
		case known == nil || slice.Spec.Pool.Generation > known[0].Spec.Pool.Generation:
			newest[id] = []*resourceapi.ResourceSlice{slice}
		case slice.Spec.Pool.Generation == known[0].Spec.Pool.Generation:
			newest[id] = append(known, slice)
		}
	}
	var found []*resourceapi.ResourceSlice
	for _, part := range newest {
		if int64(len(part)) == part[0].Spec.Pool.ResourceSliceCount {
			found = append(found, part...)
		}
	}
	return found
}

func matchesAll(selectors []resourceapi.DeviceSelector, driver string, device resourceapi.Device) (bool, error) {
	input := cel.Device{
		Driver:                   driver,
		AllowMultipleAllocations: device.AllowMultipleAllocations,
		Attributes:               device.Attributes,
		Capacity:                 device.Capacity,
	}
	for _, selector := range selectors {
		compiled := celCache.GetOrCompile(selector.CEL.Expression)
		if compiled.Error != nil {
			return false, compiled.Error
		}
		matches, _, err := compiled.DeviceMatches(context.Background(), input)
		if err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}
