import { expect, test } from "vitest";
import { optionalPackage } from "./optional-package.ts";

const failing = (error: object) => () => Promise.reject(Object.assign(new Error("failed"), error));
const absent = failing({ code: "ERR_MODULE_NOT_FOUND" });

test("who asks for a package that is not installed is told how to install it", async () => {
  await expect(optionalPackage(["ioredis"], "the engine redis uses", absent)).rejects.toMatchObject({
    code: "no-library",
    message: "expected the package ioredis to be installed, which the engine redis uses: npm install ioredis",
  });
  await expect(optionalPackage(["bullmq", "ioredis"], "--redis uses", absent)).rejects.toThrow(
    "expected the packages bullmq and ioredis to be installed, which --redis uses: npm install bullmq ioredis",
  );
});

test("one that is there and fails says why", async () => {
  await expect(optionalPackage(["pg"], "the engine postgres uses", failing({ code: "ERR_DLOPEN" }))).rejects.toThrow(
    "failed",
  );
  await expect(optionalPackage(["pg"], "the engine postgres uses", () => Promise.resolve(1))).resolves.toBe(1);
});
