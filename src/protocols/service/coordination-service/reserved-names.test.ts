import { expect, test } from "vitest";
import { concernsOwnNames } from "./large-operations.ts";
import { ENDPOINTS, ETCD_ENDPOINTS, type Operation } from "./operations.ts";

test("detects operations that change or compare reserved names, and no others", () => {
  const putIn = (map: string) => ({ type: "put", map, key: "1", value: "{}", isLeased: false }) as const;
  const transaction = (parts: object) =>
    ({ type: "transaction", compare: [], success: [], failure: [], ...parts }) as Operation;
  const concerned: Operation[] = [
    putIn(ENDPOINTS),
    { type: "delete", map: ENDPOINTS, key: "1" },
    putIn(ETCD_ENDPOINTS),
    { type: "keys", caller: "", command: { type: "compact", revision: 1 } },
    transaction({ success: [putIn("other"), putIn(ENDPOINTS)] }),
    transaction({ failure: [{ type: "delete", map: ENDPOINTS, key: "1" }] }),
    transaction({ compare: [{ type: "revision", map: ENDPOINTS, key: "1", revision: 0 }] }),
  ];
  const others: Operation[] = [
    putIn("other"),
    transaction({ success: [putIn("other")] }),
    { type: "execute", machine: "mine", command: "1" },
    { type: "add", name: ENDPOINTS, by: 1 },
  ];
  expect(concerned.map(concernsOwnNames)).toEqual(concerned.map(() => true));
  expect(others.map(concernsOwnNames)).toEqual(others.map(() => false));
});
