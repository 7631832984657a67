// Produce, consume, group, transaction and administration with franz-go.
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

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	seeds              = strings.Split(os.Args[1], ",")
	prefix             = os.Args[2]
	topic, group, txn  = prefix + "-data", prefix + "-group", prefix + "-txn"
	background, cancel = context.WithTimeout(context.Background(), time.Minute)
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

// A broker may hear of a topic later than its maker.
func patiently(act func() error) {
	err := act()
	for err != nil && background.Err() == nil {
		err = act()
	}
	check(err)
}

func client(options ...kgo.Opt) *kgo.Client {
	return must(kgo.NewClient(append(options, kgo.SeedBrokers(seeds...))...))
}

func administration() outcome {
	admin := kadm.NewClient(client())
	defer admin.Close()
	hour := "3600000"
	configs := map[string]*string{"retention.ms": &hour}
	must(admin.CreateTopic(background, 3, 3, configs, topic))
	again := "created"
	if _, err := admin.CreateTopic(background, 3, 3, configs, topic); errors.Is(err, kerr.TopicAlreadyExists) {
		again = "exists"
	}
	var retention string
	var described kadm.ResourceConfig
	patiently(func() error {
		described = must(must(admin.DescribeTopicConfigs(background, topic)).On(topic, nil))
		return described.Err
	})
	for _, one := range described.Configs {
		if one.Key == "retention.ms" {
			retention = one.MaybeValue()
		}
	}
	gone := prefix + "-gone"
	must(admin.CreateTopic(background, 1, 1, nil, gone))
	patiently(func() error { return must(admin.CreatePartitions(background, 1, gone)).Error() })
	check(must(admin.DeleteTopics(background, gone)).Error())
	return outcome{
		"retention": retention, "again": again,
		"brokers": must(admin.ListBrokers(background)).NodeIDs(),
	}
}

func produce() outcome {
	producer := client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	defer producer.Close()
	last := []int64{-1, -1, -1}
	for n := range 90 {
		producer.Produce(background, &kgo.Record{
			Topic: topic, Partition: int32(n % 3),
			Key: fmt.Appendf(nil, "key %d", n), Value: fmt.Appendf(nil, "value %d", n),
			Headers: []kgo.RecordHeader{{Key: "n", Value: fmt.Appendf(nil, "%d", n)}},
		}, func(*kgo.Record, error) {})
	}
	check(producer.Flush(background))
	ends := must(kadm.NewClient(producer).ListEndOffsets(background, topic))
	ends.Each(func(one kadm.ListedOffset) { last[one.Partition] = one.Offset - 1 })
	return outcome{"last": last}
}

// All records up to the ends, partition by partition.
func everything(isolation kgo.IsolationLevel) []*kgo.Record {
	start := map[int32]kgo.Offset{}
	for partition := range int32(3) {
		start[partition] = kgo.NewOffset().AtStart()
	}
	consumer := client(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: start}),
		kgo.FetchIsolationLevel(isolation), kgo.KeepControlRecords(),
	)
	defer consumer.Close()
	admin := kadm.NewClient(consumer)
	left := map[int32]int64{}
	ends := must(admin.ListEndOffsets(background, topic))
	ends.Each(func(one kadm.ListedOffset) { left[one.Partition] = one.Offset })
	var seen [3][]*kgo.Record
	for len(left) > 0 {
		fetched := consumer.PollFetches(background)
		check(fetched.Err0())
		fetched.EachRecord(func(record *kgo.Record) {
			if record.Offset+1 >= left[record.Partition] {
				delete(left, record.Partition)
			}
			if !record.Attrs.IsControl() {
				seen[record.Partition] = append(seen[record.Partition], record)
			}
		})
	}
	return slices.Concat(seen[:]...)
}

func consume() outcome {
	var records [][]string
	for _, one := range everything(kgo.ReadUncommitted()) {
		records = append(records, []string{string(one.Value), string(one.Key), string(one.Headers[0].Value)})
	}
	return outcome{"records": records}
}

func committed(admin *kadm.Client) []int64 {
	known := must(admin.FetchOffsets(background, group))
	offsets := make([]int64, 3)
	known.Each(func(one kadm.OffsetResponse) { offsets[one.Partition] = one.At })
	return offsets
}

func member() outcome {
	consumer := client(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	read := 0
	for read < 90 {
		fetched := consumer.PollFetches(background)
		check(fetched.Err0())
		read += fetched.NumRecords()
	}
	check(consumer.CommitUncommittedOffsets(background))
	consumer.LeaveGroup()
	consumer.Close()
	admin := kadm.NewClient(client())
	defer admin.Close()
	state := must(admin.DescribeGroups(background, group))[group].State
	return outcome{"read": read, "committed": committed(admin), "state": strings.ToUpper(state)}
}

func transaction() outcome {
	producer := client(kgo.TransactionalID(txn), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for _, fate := range []string{"aborted", "committed"} {
		check(producer.BeginTransaction())
		for n := range 10 {
			producer.Produce(background, &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%s %d", fate, n)}, nil)
		}
		check(producer.Flush(background))
		if fate == "committed" {
			offsets(producer)
		}
		check(producer.EndTransaction(background, kgo.TransactionEndTry(fate == "committed")))
	}
	producer.Close()
	settle()
	admin := kadm.NewClient(client())
	defer admin.Close()
	return outcome{
		"read_committed":   len(everything(kgo.ReadCommitted())),
		"read_uncommitted": len(everything(kgo.ReadUncommitted())),
		"offset":           committed(admin)[0],
	}
}

// A transaction's end is answered before its markers are written: the next of the same id waits.
func settle() {
	heir := client(kgo.TransactionalID(txn))
	defer heir.Close()
	patiently(func() error { _, _, err := heir.ProducerID(background); return err })
}

// The group goes back to offset 7 of partition 0 within the transaction.
func offsets(producer *kgo.Client) {
	id, epoch, err := producer.ProducerID(background)
	check(err)
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = txn, id, epoch, group
	check(kerr.ErrorForCode(must(add.RequestWith(background, producer)).ErrorCode))
	place := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	place.Offset = 7
	request := kmsg.NewPtrTxnOffsetCommitRequest()
	request.TransactionalID, request.ProducerID, request.ProducerEpoch = txn, id, epoch
	request.Group = group
	request.Topics = []kmsg.TxnOffsetCommitRequestTopic{{
		Topic: topic, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{place},
	}}
	answer := must(request.RequestWith(background, producer))
	check(kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode))
}

func main() {
	defer cancel()
	all := outcome{}
	all["administration"] = administration()
	all["produce"] = produce()
	all["consume"] = consume()
	all["group"] = member()
	all["transaction"] = transaction()
	check(json.NewEncoder(os.Stdout).Encode(all))
}
