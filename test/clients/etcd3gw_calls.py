"""Uses each call of the etcd3gw client, over etcd's JSON gateway, and prints what it returns. The argument is the port."""
import sys
import threading

from etcd3gw.client import Etcd3Client
from etcd3gw import exceptions
from etcd3gw.utils import _encode

client = Etcd3Client(host="127.0.0.1", port=int(sys.argv[1]), api_path="/v3/")

print("status", sorted(client.status()))
print("put", client.put("k/a", "1"), client.put("k/b", "2"), client.put("k/ü", b"\x00\xff"))
print("get", client.get("k/a"), client.get("k/none"), client.get_prefix("k/b")[0][0])
print("sorted", [value for value, _ in client.get_prefix("k/", sort_order="descend", sort_target="create")])
print("create", client.create("k/new", "1"), client.create("k/new", "2"))
print("replace", client.replace("k/new", "1", "3"), client.replace("k/new", "1", "4"), client.get("k/new"))

lease = client.lease(ttl=100)
client.put("k/leased", "x", lease)
print("lease", lease.keys(), lease.refresh(), lease.ttl() > 90, lease.revoke(), client.get("k/leased"))

with client.lock("lock", ttl=100) as lock:
    print("lock", lock.is_acquired(), client.lock("lock", ttl=100).acquire())

events, cancel = client.watch_prefix("w/")
threading.Thread(target=lambda: [client.put("w/1", "one"), client.delete("w/1")]).start()
for _, event in zip(range(2), events):
    print("watch", event.get("type", "PUT"), event["kv"]["key"], event["kv"].get("value"))
cancel()

txn = {
    "compare": [{"key": _encode("k/a"), "result": "EQUAL", "target": "VALUE", "value": _encode("1")}],
    "success": [{"request_put": {"key": _encode("k/a"), "value": _encode("11")}}],
    "failure": [{"request_range": {"key": _encode("k/a")}}],
}
for _ in range(2):
    answer = client.transaction(txn)
    print("txn", answer.get("succeeded", False), [sorted(each) for each in answer["responses"]])

try:
    client.put("k/a", "x", lease)
except exceptions.Etcd3Exception as error:
    print("error", error.detail_text if hasattr(error, "detail_text") else error)
print("delete", client.delete("k/a"), client.delete("k/a"), client.delete_prefix("k/"))
