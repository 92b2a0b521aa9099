package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// The feature gates of kube-scheduler 1.37 that are on by default (dynamicresources.AllocatorFeatures).
var features = structured.Features{
	AdminAccess:            true,
	PrioritizedList:        true,
	PartitionableDevices:   true,
	DeviceTaints:           true,
	DeviceBindingAndStatus: true,
	ConsumableCapacity:     true,
}

var celCache = cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true})

// cluster is what the scheduler knows.
type cluster struct {
	nodes     []*corev1.Node
	slices    []*resourceapi.ResourceSlice
	classes   classLister
	names     *extendedresourcecache.ExtendedResourceCache
	claimants map[corev1.ResourceName][]string
	claims    map[string]*resourceapi.ResourceClaim
	templates map[string]*resourceapi.ResourceClaimTemplate
	pods      []*corev1.Pod
	allocator structured.Allocator
}

type classLister map[string]*resourceapi.DeviceClass

func (l classLister) List() ([]*resourceapi.DeviceClass, error) {
	return nil, fmt.Errorf("nobody asks for all classes")
}

func (l classLister) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := l[name]; ok {
		return class, nil
	}
	return nil, fmt.Errorf("deviceclass.resource.k8s.io %q not found", name)
}

func newCluster(asked question) (*cluster, error) {
	c := &cluster{
		classes:   classLister{},
		claimants: asked.Claimants,
		names:     extendedresourcecache.NewExtendedResourceCache(klog.Background()),
		claims:    map[string]*resourceapi.ResourceClaim{},
		templates: map[string]*resourceapi.ResourceClaimTemplate{},
	}
	var rules []*resourceapi.DeviceTaintRule
	for _, raw := range asked.Objects {
		if err := c.add(raw, &rules); err != nil {
			return nil, err
		}
	}
	for _, event := range asked.ClassEvents {
		c.hear(event)
	}
	for i, slice := range c.slices {
		c.slices[i] = tainted(slice, rules)
	}
	var err error
	c.allocator, err = structured.NewAllocator(
		context.Background(), features, allocated(c.claims, sets.New(asked.Freed...)), c.classes, c.slices, celCache)
	return c, err
}

func (c *cluster) add(raw json.RawMessage, rules *[]*resourceapi.DeviceTaintRule) error {
	var typed struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(raw, &typed); err != nil {
		return err
	}
	switch typed.Kind {
	case "Node":
		return appended(raw, &c.nodes)
	case "ResourceSlice":
		return appended(raw, &c.slices)
	case "DeviceTaintRule":
		return appended(raw, rules)
	case "Pod":
		return appended(raw, &c.pods)
	case "ResourceClaim":
		var claim resourceapi.ResourceClaim
		c.claims[key(raw)] = &claim
		return json.Unmarshal(raw, &claim)
	case "ResourceClaimTemplate":
		var template resourceapi.ResourceClaimTemplate
		c.templates[key(raw)] = &template
		return json.Unmarshal(raw, &template)
	}
	return nil // device classes come as events
}

func appended[T any](raw json.RawMessage, all *[]*T) error {
	var object T
	*all = append(*all, &object)
	return json.Unmarshal(raw, &object)
}

func key(raw json.RawMessage) string {
	var named struct {
		Metadata struct{ Namespace, Name string }
	}
	_ = json.Unmarshal(raw, &named)
	return named.Metadata.Namespace + "/" + named.Metadata.Name
}

func (c *cluster) hear(event classEvent) {
	class, old := event.Object, c.classes[event.Object.Name]
	switch {
	case event.Type == "DELETED":
		delete(c.classes, class.Name)
		c.names.OnDelete(class)
	case old == nil:
		c.classes[class.Name] = class
		c.names.OnAdd(class, false)
	default:
		c.classes[class.Name] = class
		c.names.OnUpdate(old, class)
	}
}

// tainted is the slice with the taints of rules (resourceslice/tracker.applyPatches).
func tainted(slice *resourceapi.ResourceSlice, rules []*resourceapi.DeviceTaintRule) *resourceapi.ResourceSlice {
	for _, rule := range rules {
		selector := rule.Spec.DeviceSelector
		if selector == nil || ptr.Deref(selector.Driver, slice.Spec.Driver) != slice.Spec.Driver ||
			ptr.Deref(selector.Pool, slice.Spec.Pool.Name) != slice.Spec.Pool.Name {
			continue
		}
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			if ptr.Deref(selector.Device, device.Name) == device.Name {
				device.Taints = append(slices.Clone(device.Taints), rule.Spec.Taint)
			}
		}
	}
	return slice
}

// allocated is what claims hold (dynamicresources.foreachAllocatedDevice).
func allocated(claims map[string]*resourceapi.ResourceClaim, freed sets.Set[string]) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for name, claim := range claims {
		if claim.Status.Allocation == nil || freed.Has(name) {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case ptr.Deref(result.AdminAccess, false):
			case result.ShareID == nil:
				state.AllocatedDevices.Insert(id)
			default:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
				if result.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
				}
			}
		}
	}
	return state
}
