// Produce, consume, group and administration with segmentio's kafka-go, which has no transactions.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

var (
	seeds        = strings.Split(os.Args[1], ",")
	prefix       = os.Args[2]
	topic, group = prefix + "-data", prefix + "-group"
	client       = &kafka.Client{Addr: kafka.TCP(seeds...), Timeout: 30 * time.Second}
	ctx          = context.Background()
)

type outcome = map[string]any

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func create(config kafka.TopicConfig) error {
	answer := must(client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{config}}))
	return answer.Errors[config.Topic]
}

func administration() outcome {
	config := kafka.TopicConfig{
		Topic: topic, NumPartitions: 3, ReplicationFactor: 3,
		ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "3600000"}},
	}
	check(create(config))
	again := "created"
	if errors.Is(create(config), kafka.TopicAlreadyExists) {
		again = "exists"
	}
	resource := kafka.DescribeConfigRequestResource{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"retention.ms"},
	}
	asked := &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{resource}}
	described := must(client.DescribeConfigs(ctx, asked)).Resources[0]
	for deadline := time.Now().Add(30 * time.Second); described.Error != nil && time.Now().Before(deadline); {
		described = must(client.DescribeConfigs(ctx, asked)).Resources[0] // another broker may not have it yet
	}
	check(described.Error)
	gone := prefix + "-gone"
	check(create(kafka.TopicConfig{Topic: gone, NumPartitions: 1, ReplicationFactor: 1}))
	more := []kafka.TopicPartitionsConfig{{Name: gone, Count: 2}}
	check(must(client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: more})).Errors[gone])
	check(must(client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{gone}})).Errors[gone])
	var brokers []int
	for _, one := range must(client.Metadata(ctx, &kafka.MetadataRequest{})).Brokers {
		brokers = append(brokers, one.ID)
	}
	slices.Sort(brokers)
	return outcome{"retention": described.ConfigEntries[0].ConfigValue, "again": again, "brokers": brokers}
}

func produce() outcome {
	for partition := range 3 {
		writer := &kafka.Writer{
			Addr: kafka.TCP(seeds...), Topic: topic, RequiredAcks: kafka.RequireAll, Compression: kafka.Zstd,
			Balancer:     kafka.BalancerFunc(func(kafka.Message, ...int) int { return partition }),
			BatchTimeout: 10 * time.Millisecond,
		}
		var messages []kafka.Message
		for n := partition; n < 90; n += 3 {
			text := fmt.Sprint(n)
			messages = append(messages, kafka.Message{
				Key: []byte("key " + text), Value: []byte("value " + text),
				Headers: []kafka.Header{{Key: "n", Value: []byte(text)}},
			})
		}
		check(writer.WriteMessages(ctx, messages...))
		check(writer.Close())
	}
	var last []int64
	for partition := range 3 {
		last = append(last, end(partition)-1)
	}
	return outcome{"last": last}
}

func end(partition int) int64 {
	asked := map[string][]kafka.OffsetRequest{topic: {kafka.LastOffsetOf(partition)}}
	answer := must(client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: asked}))
	return answer.Topics[topic][0].LastOffset
}

func consume() outcome {
	var records [][]string
	for partition := range 3 {
		reader := kafka.NewReader(kafka.ReaderConfig{Brokers: seeds, Topic: topic, Partition: partition})
		for next, last := int64(0), end(partition); next < last; {
			one := must(reader.ReadMessage(ctx))
			records = append(records, []string{string(one.Value), string(one.Key), string(one.Headers[0].Value)})
			next = one.Offset + 1
		}
		check(reader.Close())
	}
	return outcome{"records": records}
}

func member() outcome {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: seeds, GroupID: group, Topic: topic, StartOffset: kafka.FirstOffset,
	})
	read := 0
	for ; read < 90; read++ {
		check(reader.CommitMessages(ctx, must(reader.FetchMessage(ctx))))
	}
	check(reader.Close())
	asked := &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {0, 1, 2}}}
	var committed []int64
	for _, one := range must(client.OffsetFetch(ctx, asked)).Topics[topic] {
		check(one.Error)
		committed = append(committed, one.CommittedOffset)
	}
	described := must(client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}}))
	state := strings.ToUpper(described.Groups[0].GroupState)
	return outcome{"read": read, "committed": committed, "state": state}
}

func main() {
	all := outcome{}
	all["administration"] = administration()
	all["produce"] = produce()
	all["consume"] = consume()
	all["group"] = member()
	check(json.NewEncoder(os.Stdout).Encode(all))
}
