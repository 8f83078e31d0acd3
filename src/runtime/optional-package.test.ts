import { expect, test } from "vitest";
import { optionalPackage } from "./optional-package.ts";

const failing = (error: object) => () => Promise.reject(Object.assign(new Error("failed"), error));
const absent = failing({ code: "ERR_MODULE_NOT_FOUND" });

test("a missing package is reported with the command that installs it", async () => {
  await expect(optionalPackage(["ioredis"], "the engine redis uses", absent)).rejects.toMatchObject({
    code: "no-library",
    message: "expected the package ioredis, which the engine redis uses, to be installed: npm install ioredis",
  });
  await expect(
    optionalPackage(["@nats-io/jetstream", "@nats-io/transport-node"], "the engine nats uses", absent),
  ).rejects.toThrow(
    "expected the packages @nats-io/jetstream and @nats-io/transport-node, which the engine nats uses, to be installed: npm install @nats-io/jetstream @nats-io/transport-node",
  );
});

test("a package that fails to load reports its own error", async () => {
  await expect(optionalPackage(["pg"], "the engine postgres uses", failing({ code: "ERR_DLOPEN" }))).rejects.toThrow(
    "failed",
  );
  await expect(optionalPackage(["pg"], "the engine postgres uses", () => Promise.resolve(1))).resolves.toBe(1);
});
