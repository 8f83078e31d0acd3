import { describe, expect, test } from "vitest";
import { endpointTold, socketUrl } from "./endpoints.ts";

test.each([
  ["http://10.0.0.1:7300", "ws://10.0.0.1:7300/v1/client"],
  ["https://node-1.example.org", "wss://node-1.example.org/v1/client"],
  ["wss://[::1]:7300/", "wss://[::1]:7300/v1/client"],
])("%s is reached by %s", (endpoint, url) => expect(socketUrl(endpoint)).toBe(url));

test.each([
  "",
  "10.0.0.1:7300",
  "tcp://10.0.0.1:7300",
  "http://",
  "http://a/b",
  "http://user@a",
  "http://a?b",
  "http://a:73000",
  "http://a:0",
  "http://a:b",
])("rejects %j", (endpoint) =>
  expect(() => socketUrl(endpoint, "clients.url")).toThrow(/expected clients\.url to be a URL such as/),
);

describe("an announced endpoint", () => {
  const open = ["http://10.0.0.1:7300", "https://10.0.0.2:7300"];
  const secure = ["https://10.0.0.2:7300"];

  test.each([
    ["is used", '"http://10.0.0.3:7300"', open, "http://10.0.0.3:7300"],
    ["is used where it is secure", '"https://10.0.0.3:7300"', secure, "https://10.0.0.3:7300"],
    ["is not used where a token would be open on the way", '"http://10.0.0.3:7300"', secure, null],
    ["is not used if it is not an endpoint", '"file:///etc/passwd"', open, null],
    ["is not used if it is not a string", "7300", open, null],
    ["is not used if it is not JSON", "http://10.0.0.3:7300", open, null],
    ["is not used if it is too long", JSON.stringify(`http://${"a".repeat(300)}`), open, null],
  ])("%s", (_what, value, given, used) => expect(endpointTold(value, given)).toBe(used));
});
