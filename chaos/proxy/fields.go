package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
)

// Fields of messages by path: `transactional_id`, `topics[].partitions[].partition`. Names are
// those of Kafka's message definitions in snake case; the codec's own names serve, too.

// codecNames are names of Kafka's definitions that the codec has otherwise.
var codecNames = map[string][]string{
	"name":           {"topic", "group"},
	"groupid":        {"group"},
	"topicname":      {"topic"},
	"topicdata":      {"topics"},
	"partitiondata":  {"partitions"},
	"responses":      {"topics"},
	"partitionindex": {"partition"},
	"index":          {"partition"},
	"topic":          {"name"},

	"transactionalid":      {"transactionid"},
	"timeoutms":            {"timeoutmillis"},
	"throttletimems":       {"throttlemillis"},
	"maxwaitms":            {"maxwaitmillis"},
	"sessiontimeoutms":     {"sessiontimeoutmillis"},
	"rebalancetimeoutms":   {"rebalancetimeoutmillis"},
	"transactiontimeoutms": {"transactiontimeoutmillis"},
}

func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// fieldOf finds a field of a struct type by its name.
func fieldOf(kind reflect.Type, name string) (reflect.StructField, error) {
	for _, candidate := range append([]string{plain(name)}, codecNames[plain(name)]...) {
		for at := range kind.NumField() {
			if field := kind.Field(at); field.IsExported() && plain(field.Name) == candidate {
				return field, nil
			}
		}
	}
	return reflect.StructField{}, fmt.Errorf(
		"there is no field %q; there are %s", name, strings.Join(fieldNames(kind), ", "),
	)
}

func fieldNames(kind reflect.Type) []string {
	var names []string
	for at := range kind.NumField() {
		field := kind.Field(at)
		if !isMessageField(field) {
			continue
		}
		name := snakeCase(field.Name)
		if isList(field.Type) {
			name += "[]"
		}
		names = append(names, name)
	}
	return names
}

func snakeCase(name string) string {
	var text strings.Builder
	for at, letter := range name {
		isUpper := letter >= 'A' && letter <= 'Z'
		if isUpper && at > 0 && !(name[at-1] >= 'A' && name[at-1] <= 'Z') {
			text.WriteByte('_')
		}
		text.WriteRune(letter)
	}
	return strings.ToLower(text.String())
}

// checkPath refuses a path that the message has at no version.
func checkPath(key int16, isRequest bool, path string) error {
	kind := reflect.TypeOf(emptyBody(key, isRequest))
	for _, step := range strings.Split(path, ".") {
		for kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind.Kind() != reflect.Struct {
			return fmt.Errorf("path %q: %q is behind a plain value", path, step)
		}
		name, isWrittenAsList := strings.CutSuffix(step, "[]")
		field, err := fieldOf(kind, name)
		if err != nil {
			return fmt.Errorf("path %q: %w", path, err)
		}
		kind = field.Type
		hasItems := isList(kind)
		if hasItems != isWrittenAsList {
			return fmt.Errorf("path %q: write %s", path, map[bool]string{
				true: name + "[], it is a list", false: name + " without [], it is not a list",
			}[hasItems])
		}
		if hasItems {
			kind = kind.Elem()
		}
	}
	return nil
}

// visit calls `act` with every value at the path.
func visit(value reflect.Value, path string, act func(reflect.Value)) {
	for value.Kind() == reflect.Pointer && path != "" {
		if value.IsNil() {
			return
		}
		value = value.Elem()
	}
	if path == "" {
		act(value)
		return
	}
	step, rest, _ := strings.Cut(path, ".")
	name, isWrittenAsList := strings.CutSuffix(step, "[]")
	field, err := fieldOf(value.Type(), name)
	if err != nil {
		return
	}
	value = value.FieldByIndex(field.Index)
	if !isWrittenAsList {
		visit(value, rest, act)
		return
	}
	for at := range value.Len() {
		visit(value.Index(at), rest, act)
	}
}

func hasValue(message any, path string, expected any) bool {
	isThere := false
	visit(reflect.ValueOf(message), path, func(value reflect.Value) {
		isThere = isThere || isEqual(value, expected)
	})
	return isThere
}

func isEqual(value reflect.Value, expected any) bool {
	if value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return expected == nil
		}
		value = value.Elem()
	}
	switch expected := expected.(type) {
	case string:
		text, isText := textOf(value)
		return isText && (text == expected || matches(expected, text))
	case float64:
		return value.CanInt() && value.Int() == int64(expected) ||
			value.CanUint() && value.Uint() == uint64(expected) ||
			value.CanFloat() && value.Float() == expected
	case bool:
		return value.Kind() == reflect.Bool && value.Bool() == expected
	}
	return false
}

// textOf is a string, bytes as text, or a topic id as URL-safe base64.
func textOf(value reflect.Value) (string, bool) {
	switch {
	case value.Kind() == reflect.String:
		return value.String(), true
	case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Uint8:
		return string(value.Bytes()), true
	case value.Kind() == reflect.Array && value.Len() == 16:
		id := make([]byte, 16)
		reflect.Copy(reflect.ValueOf(id), value)
		return base64.RawURLEncoding.EncodeToString(id), true
	}
	return "", false
}

// setErrors sets every error code of a message.
func setErrors(message any, code int16) error {
	if count := setErrorsIn(reflect.ValueOf(message), code); count == 0 {
		return fmt.Errorf("the answer has no error code")
	}
	return nil
}

func setErrorsIn(value reflect.Value, code int16) int {
	count := 0
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			count += setErrorsIn(value.Elem(), code)
		}
	case reflect.Slice:
		for at := range value.Len() {
			count += setErrorsIn(value.Index(at), code)
		}
	case reflect.Struct:
		for at := range value.NumField() {
			field := value.Type().Field(at)
			switch {
			case field.Name == "ErrorCode" && field.Type.Kind() == reflect.Int16:
				value.Field(at).SetInt(int64(code))
				count++
			case field.IsExported():
				count += setErrorsIn(value.Field(at), code)
			}
		}
	}
	return count
}

// setField sets every value at the path.
func setField(message any, path string, value any) error {
	count := 0
	var failure error
	visit(reflect.ValueOf(message), path, func(field reflect.Value) {
		if err := set(field, value); err != nil {
			failure = fmt.Errorf("%s: %w", path, err)
		}
		count++
	})
	if failure == nil && count == 0 {
		return fmt.Errorf("%s: the message has no such value", path)
	}
	return failure
}

func set(field reflect.Value, value any) error {
	if field.Kind() == reflect.Pointer {
		if value == nil {
			field.SetZero()
			return nil
		}
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch value := value.(type) {
	case float64:
		if field.CanInt() && !field.OverflowInt(int64(value)) {
			field.SetInt(int64(value))
			return nil
		}
		if field.CanFloat() {
			field.SetFloat(value)
			return nil
		}
	case bool:
		if field.Kind() == reflect.Bool {
			field.SetBool(value)
			return nil
		}
	case string:
		return setText(field, value)
	}
	return fmt.Errorf("%v is not a %s", value, field.Type())
}

func setText(field reflect.Value, value string) error {
	switch {
	case field.Kind() == reflect.String:
		field.SetString(value)
		return nil
	case field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Uint8:
		data, err := hex.DecodeString(value)
		if err != nil {
			return fmt.Errorf("bytes are written in hexadecimal: %w", err)
		}
		field.SetBytes(data)
		return nil
	case field.Kind() == reflect.Array && field.Len() == 16:
		id, err := base64.RawURLEncoding.DecodeString(value)
		if err != nil || len(id) != 16 {
			return fmt.Errorf("%q is not an id: 16 bytes in base64 for URLs", value)
		}
		reflect.Copy(field, reflect.ValueOf(id))
		return nil
	}
	return fmt.Errorf("%q is not a %s", value, field.Type())
}
