import { expect, test } from "vitest";
import { join } from "../cluster/join.ts";
import type { EngineJoinOptions } from "../cluster/services/external-engine.ts";
import { etcd } from "./etcd.ts";

test.each([["b:2379"], ["localhost:2379"], ["ftp://b:2379"], ["127.0.0.1:2379"], [2379]])(
  "rejects %s as an endpoint of etcd",
  (endpoint) => {
    const endpoints = ["http://127.0.0.1:2379", endpoint as string];
    expect(() => etcd({ endpoints })).toThrow('a list of http: or https: URLs, such as "http://127.0.0.1:2379"');
  },
);

test("accepts endpoints of both protocols", () => {
  expect(etcd({ endpoints: ["http://127.0.0.1:2379", "https://b:2379"] }).name).toBe("etcd");
});

test.each([
  ["a function that was not called", etcd],
  ["an object without calls", {}],
  ["null", null],
  ["its name", "etcd"],
])("rejects %s as an engine", async (_what, engine) => {
  await expect(join({ engine } as unknown as EngineJoinOptions)).rejects.toMatchObject({
    code: "bad-option",
    message: expect.stringMatching(
      /^expected engine of join\(\) to be the result of a function from coterie\/engines\/…/,
    ),
  });
});
