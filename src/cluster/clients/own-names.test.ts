import { describe, expect, it, test } from "vitest";
import {
  ENDPOINTS,
  ETCD_ENDPOINTS,
  type Operation,
  type Query,
} from "../../protocols/service/coordination-service/operations.ts";
import { forCallers, isOfClients, mayBeRead } from "./own-names.ts";
import { performed, readTransaction } from "./transaction-request.ts";

const put = (map: string) => ({ type: "put", map, key: "1", value: "1", isLeased: false }) as const;
const compare = { type: "revision", map: ENDPOINTS, key: "1", revision: 0 } as const;

describe("reserved names", () => {
  const nothing = { type: "transaction", compare: [], success: [], failure: [] } as const;
  const changes: Operation[] = [
    put(ENDPOINTS),
    { type: "delete", map: ETCD_ENDPOINTS, key: "1" },
    { ...nothing, compare: [compare], success: [], failure: [] },
    { ...nothing, compare: [], success: [put(ENDPOINTS)], failure: [] },
    { ...nothing, compare: [], success: [], failure: [put(ENDPOINTS)] },
    { type: "execute", machine: "coterie/machine", command: "{}" },
    { type: "keys", caller: "", command: { type: "compact", revision: 1 } },
    { type: "set", name: "coterie/clients", to: Number.MAX_SAFE_INTEGER }, // No further client would get an id.
    { type: "enqueue", name: "coterie/queue", value: "1" },
  ];
  it.each(changes.map((each) => [JSON.stringify(each), each] as const))(
    "cannot be changed by a client: %s",
    (_text, operation) => {
      expect(isOfClients(operation)).toBe(false);
      expect(() => forCallers({ submit: never, call: never }).submit(operation, () => true)).toThrow(
        /expected names to be ones that do not begin with coterie\//,
      );
    },
  );

  const reads: [Query, boolean][] = [
    [{ type: "range", map: ENDPOINTS, from: "", to: null, limit: 1 }, true],
    [{ type: "range", map: ETCD_ENDPOINTS, from: "", to: null, limit: 1 }, false],
    [{ type: "get", map: "coterie/other", key: "1" }, false],
    [{ type: "changes", map: "coterie/other", after: 0 }, false],
    [{ type: "readKeys", question: { type: "size" } }, false],
    [{ type: "ask", machine: "ledger", question: "{}" }, true],
    [{ type: "get", map: "stock", key: "1" }, true],
  ];
  it.each(reads)("are readable only for the map of endpoints: %j", (query, may) => expect(mayBeRead(query)).toBe(may));

  it("may appear in a release, which keeps a session alive", () => {
    expect(isOfClients({ type: "release", name: "coterie/alive", token: 0 })).toBe(true);
    expect(isOfClients(put("stock"))).toBe(true);
  });
});

test.each([
  `{"if":[{"map":"${ENDPOINTS}","key":"1","revision":0}]}`,
  `{"if":[{"map":"${ENDPOINTS}","key":"1","value":"http://127.0.0.1:7300"}]}`,
  `{"then":[{"put":{"map":"${ENDPOINTS}","key":"66","value":"http://127.0.0.1:17666"}}]}`,
  `{"then":[{"get":{"map":"${ETCD_ENDPOINTS}","key":"1"}}]}`,
  `{"else":[{"delete":{"map":"${ENDPOINTS}","key":"1"}}]}`,
])("cannot appear in a transaction: %s", async (request) => {
  const asked = performed({ submit: never, call: never }, readTransaction(JSON.parse(request)));
  await expect(asked).rejects.toThrow(/to be one that does not begin with coterie\/, which is reserved/);
});

function never(): never {
  throw new Error("expected nothing to be put to the log");
}
