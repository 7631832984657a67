package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The catalogue of what the codec knows, for readers that check rules before a proxy runs
// (fields.json, read by chaos/message_fields.py).

// apiEntry is one API. Fields are types by name; lists end in [], messages within are nested.
type apiEntry struct {
	Key        int16          `json:"key"`
	MaxVersion int16          `json:"max_version"`
	Request    map[string]any `json:"request"`
	Answer     map[string]any `json:"answer"`
}

// catalogue is the JSON of all APIs, a line each, and of the further names of fields.
func catalogue() string {
	var lines []string
	for key := int16(0); key <= maxAPIKey; key++ {
		request := kmsg.RequestForKey(key)
		if request == nil {
			continue
		}
		entry := apiEntry{
			key, request.MaxVersion(),
			fieldTypes(reflect.TypeOf(request).Elem()),
			fieldTypes(reflect.TypeOf(kmsg.ResponseForKey(key)).Elem()),
		}
		text, err := json.Marshal(entry)
		if err != nil {
			panic(err) // plain maps of strings
		}
		lines = append(lines, fmt.Sprintf("  %q: %s", kmsg.NameForKey(key), text))
	}
	names, err := json.Marshal(codecNames)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(
		"{\n \"further_names\": %s,\n \"apis\": {\n%s\n }\n}\n", names, strings.Join(lines, ",\n"),
	)
}

func fieldTypes(kind reflect.Type) map[string]any {
	types := map[string]any{}
	for at := range kind.NumField() {
		field := kind.Field(at)
		if !isMessageField(field) {
			continue
		}
		name, inner := snakeCase(field.Name), plainType(field.Type)
		if isList(inner) {
			name, inner = name+"[]", plainType(inner.Elem())
		}
		if inner.Kind() == reflect.Struct {
			types[name] = fieldTypes(inner)
		} else {
			types[name] = typeName(inner)
		}
	}
	return types
}

func plainType(kind reflect.Type) reflect.Type {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	return kind
}

func isList(kind reflect.Type) bool {
	return kind.Kind() == reflect.Slice && kind.Elem().Kind() != reflect.Uint8
}

func isMessageField(field reflect.StructField) bool {
	return field.IsExported() && field.Name != "Version" && field.Name != "UnknownTags"
}

func typeName(kind reflect.Type) string {
	switch kind.Kind() {
	case reflect.Slice:
		return "bytes"
	case reflect.Array:
		return "uuid"
	}
	return kind.Kind().String()
}
