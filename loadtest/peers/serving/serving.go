// Package serving is what the peers in Go share: the sum, the table, the sentence and the listener.
package serving

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Counts are devices by the name of an extended resource.
type Counts map[string]int64

// Add counts what one container asks for; other resources have no slash in their names.
func (c Counts) Add(name string, count int64) {
	if count > 0 && strings.Contains(name, "/") {
		c[name] += count
	}
}

// Raise is for an init container: the pod needs what it asks for, or more.
func (c Counts) Raise(other Counts) {
	for name, count := range other {
		c[name] = max(c[name], count)
	}
}

// Refusal is the sentence for a resource of which no device is free; empty: there is room.
func Refusal(asked, free Counts) string {
	for name, count := range asked {
		if left, known := free[name]; known && left == 0 {
			return fmt.Sprintf("[NoGPUCapacity] no free device for %s (%d asked): all %d devices of class %s are taken in "+
				"%d pools, as of %s. Try again later, wait in the queue with label gpu-vacancy.dev/queue=true, "+
				"or run on CPU.", name, count, 4000, "gpu-full", 500, "21:49 UTC")
		}
	}
	return ""
}

// Run serves until it is killed: ADDRESS FOLDER NAME=FREE... are the arguments; the folder holds tls.crt and tls.key.
func Run(answer func(body []byte, free Counts) ([]byte, error)) {
	free := Counts{}
	for _, argument := range os.Args[3:] {
		name, count, _ := strings.Cut(argument, "=")
		parsed, err := strconv.ParseInt(count, 10, 64)
		if err != nil {
			log.Fatal(err)
		}
		free[name] = parsed
	}
	handler := func(response http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err == nil {
			body, err = answer(body, free)
		}
		if err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		response.Header().Set("Content-Type", "application/json")
		response.Write(body)
	}
	server := http.Server{
		Addr:         os.Args[1],
		Handler:      http.HandlerFunc(handler),
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2, as the API server speaks none
	}
	folder := os.Args[2]
	log.Fatal(server.ListenAndServeTLS(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")))
}
