"""Uses the calls of the python-etcd3 client, over gRPC, and prints what they return. The argument is the port."""
import sys
import threading

import etcd3

client = etcd3.client(port=int(sys.argv[1]), timeout=60)

print("put", client.put("p/a", "1") is not None, client.put_if_not_exists("p/a", "2"), client.put_if_not_exists("p/b", "2"))
value, meta = client.get("p/a")
print("get", value, meta.version, meta.key, client.get("p/none"))
print("range", [(value, meta.key) for value, meta in client.get_range("p/a", "p/c", sort_order="descend")])
print("replace", client.replace("p/a", "1", "11"), client.replace("p/a", "1", "12"))
print("txn", client.transaction(
    compare=[client.transactions.value("p/a") == "11", client.transactions.version("p/a") > 1],
    success=[client.transactions.put("p/t", "yes"), client.transactions.get("p/a")],
    failure=[client.transactions.get("p/b")],
)[0])

lease = client.lease(100)
client.put("p/leased", "x", lease=lease)
print("lease", lease.granted_ttl, lease.remaining_ttl > 90, lease.keys, lease.refresh()[0].TTL)
lease.revoke()
print("revoked", client.get("p/leased"))

lock = client.lock("p-lock", ttl=100)
other = client.lock("p-lock", ttl=100)
print("lock", lock.acquire(), lock.is_acquired(), other.acquire(timeout=0), lock.release(), other.acquire(), other.release())

events, cancel = client.watch_prefix("pw/", prev_kv=True)
threading.Thread(target=lambda: [client.put("pw/1", "one"), client.put("pw/1", "two"), client.delete("pw/1")]).start()
for _, event in zip(range(3), events):
    print("watch", type(event).__name__, event.key, event.value, event.prev_value)
cancel()

status = client.status()
print("status", status.leader is not None, len(list(client.members)) > 0, list(client.list_alarms()))
client.compact(client.get("p/a")[1].mod_revision)
client.defragment()
try:
    client.put("p/x", "1", lease=12345)
except Exception as error:  # The library raises gRPC's own error.
    print("error", error.code().name, error.details())
print("delete", client.delete("p/a"), client.delete("p/a"), client.delete_prefix("p/").deleted)
