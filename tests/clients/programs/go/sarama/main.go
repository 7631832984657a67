// Produce, consume, group, transaction and administration with Sarama.
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

	"github.com/IBM/sarama"
)

var (
	seeds             = strings.Split(os.Args[1], ",")
	prefix            = os.Args[2]
	topic, group, txn = prefix + "-data", prefix + "-group", prefix + "-txn"
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

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	return config
}

func idempotent() *sarama.Config {
	config := settings()
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1
	return config
}

func administration() outcome {
	admin := must(sarama.NewClusterAdmin(seeds, settings()))
	defer admin.Close()
	hour := "3600000"
	detail := &sarama.TopicDetail{
		NumPartitions: 3, ReplicationFactor: 3,
		ConfigEntries: map[string]*string{"retention.ms": &hour},
	}
	check(admin.CreateTopic(topic, detail, false))
	again := "created"
	if err := admin.CreateTopic(topic, detail, false); errors.Is(err, sarama.ErrTopicAlreadyExists) {
		again = "exists"
	}
	resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}}
	entries, err := admin.DescribeConfig(resource)
	for deadline := time.Now().Add(30 * time.Second); err != nil && time.Now().Before(deadline); {
		entries, err = admin.DescribeConfig(resource) // a broker may hear of it later
	}
	check(err)
	gone := prefix + "-gone"
	check(admin.CreateTopic(gone, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	check(admin.CreatePartitions(gone, 2, nil, false))
	check(admin.DeleteTopic(gone))
	described, _, err := admin.DescribeCluster()
	check(err)
	var brokers []int
	for _, one := range described {
		brokers = append(brokers, int(one.ID()))
	}
	slices.Sort(brokers)
	return outcome{"retention": entries[0].Value, "again": again, "brokers": brokers}
}

func produce() outcome {
	config := idempotent()
	config.Producer.Compression = sarama.CompressionSnappy
	producer := must(sarama.NewSyncProducer(seeds, config))
	defer producer.Close()
	last := make([]int64, 3)
	for n := range 90 {
		text := fmt.Sprint(n)
		message := &sarama.ProducerMessage{
			Topic: topic, Partition: int32(n % 3),
			Key: sarama.StringEncoder("key " + text), Value: sarama.StringEncoder("value " + text),
			Headers: []sarama.RecordHeader{{Key: []byte("n"), Value: []byte(text)}},
		}
		partition, offset, err := producer.SendMessage(message)
		check(err)
		last[partition] = offset
	}
	return outcome{"last": last}
}

// All records before the last stable offset, or the high watermark; without markers.
func everything(isolation sarama.IsolationLevel) []*sarama.ConsumerMessage {
	config := settings()
	config.Consumer.IsolationLevel = isolation
	client := must(sarama.NewClient(seeds, config))
	defer client.Close()
	consumer := must(sarama.NewConsumerFromClient(client))
	var seen []*sarama.ConsumerMessage
	for partition := range int32(3) {
		end := must(client.GetOffset(topic, partition, sarama.OffsetNewest))
		stream := must(consumer.ConsumePartition(topic, partition, sarama.OffsetOldest))
		quiet := time.NewTimer(5 * time.Second)
		for next := int64(0); next < end; {
			select {
			case message := <-stream.Messages():
				seen = append(seen, message)
				next = message.Offset + 1
				quiet.Reset(500 * time.Millisecond)
			case <-quiet.C: // what is left are markers, which this client does not show
				next = end
			}
		}
		check(stream.Close())
	}
	return seen
}

func consume() outcome {
	var records [][]string
	for _, one := range everything(sarama.ReadUncommitted) {
		records = append(records, []string{string(one.Value), string(one.Key), string(one.Headers[0].Value)})
	}
	return outcome{"records": records}
}

type counter struct {
	read int
	full context.CancelFunc
}

func (*counter) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*counter) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (it *counter) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	marked := 0
	for marked < 30 {
		message := <-claim.Messages()
		session.MarkMessage(message, "")
		marked++
	}
	session.Commit()
	it.full()
	<-session.Context().Done()
	return nil
}

func committed() []int64 {
	admin := must(sarama.NewClusterAdmin(seeds, settings()))
	defer admin.Close()
	known := must(admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0, 1, 2}}))
	var offsets []int64
	for partition := range int32(3) {
		offsets = append(offsets, known.GetBlock(topic, partition).Offset)
	}
	return offsets
}

func member() outcome {
	consumer := must(sarama.NewConsumerGroup(seeds, group, settings()))
	session, end := context.WithTimeout(context.Background(), time.Minute)
	full := make(chan struct{}, 3)
	handler := &counter{full: func() { full <- struct{}{} }}
	go func() {
		for range 3 {
			<-full
		}
		end()
	}()
	check(consumer.Consume(session, []string{topic}, handler))
	check(consumer.Close())
	admin := must(sarama.NewClusterAdmin(seeds, settings()))
	defer admin.Close()
	state := must(admin.DescribeConsumerGroups([]string{group}))[0].State
	offsets := committed()
	return outcome{
		"read": offsets[0] + offsets[1] + offsets[2], "committed": offsets,
		"state": strings.ToUpper(state),
	}
}

func transaction() outcome {
	config := idempotent()
	config.Producer.Transaction.ID = txn
	producer := must(sarama.NewSyncProducer(seeds, config))
	for _, fate := range []string{"aborted", "committed"} {
		check(producer.BeginTxn())
		for n := range 10 {
			value := sarama.StringEncoder(fmt.Sprintf("%s %d", fate, n))
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: value})
			check(err)
		}
		if fate == "aborted" {
			check(producer.AbortTxn())
			continue
		}
		where := map[string][]*sarama.PartitionOffsetMetadata{topic: {{Partition: 0, Offset: 7}}}
		check(producer.AddOffsetsToTxn(where, group))
		check(producer.CommitTxn())
	}
	check(producer.Close())
	offset := committed()[0] // this client does not ask for stable offsets
	for deadline := time.Now().Add(30 * time.Second); offset == 30 && time.Now().Before(deadline); {
		offset = committed()[0]
	}
	return outcome{
		"read_committed":   len(everything(sarama.ReadCommitted)),
		"read_uncommitted": len(everything(sarama.ReadUncommitted)),
		"offset":           offset,
	}
}

func main() {
	all := outcome{}
	all["administration"] = administration()
	all["produce"] = produce()
	all["consume"] = consume()
	all["group"] = member()
	all["transaction"] = transaction()
	check(json.NewEncoder(os.Stdout).Encode(all))
}
