/** Checks a disk that does not support the optional operations. */
import { constants, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { disk } from "./disk.ts";
import type { Folder } from "./platform.ts";

vi.mock(import("node:fs/promises"), async (original) => {
  const real = await original();
  return { ...real, open: vi.fn(real.open) };
});

const real = vi.mocked(open).getMockImplementation() as typeof open;
const refusal = (code: string): Error => Object.assign(new Error(`${code}: no`), { code });

let path: string;
let folder: Folder;
beforeEach(async () => {
  path = mkdtempSync(join(tmpdir(), "coterie-disk-"));
  folder = await disk.claim(path);
});
afterEach(async () => {
  vi.mocked(open).mockImplementation(real);
  await folder.release();
  rmSync(path, { recursive: true, force: true });
});

/** Makes syncing folders fail from now on. */
function refuseFolderSync(code: string): void {
  vi.mocked(open).mockImplementation(async (...words) => {
    const handle: FileHandle = await real(...words);
    if (words[0] === path) handle.sync = () => Promise.reject(refusal(code));
    return handle;
  });
}

describe("a rename", () => {
  test.each(["EINVAL", "EBADF", "ENOTSUP", "ENOSYS"])(
    "succeeds on a file system that cannot sync folders (%s)",
    async (code) => {
      await (await folder.create("a")).close();
      refuseFolderSync(code);
      await folder.rename("a", "b");
      expect(readdirSync(path)).toContain("b");
    },
  );

  test("fails if the disk fails to sync the folder", async () => {
    await (await folder.create("a")).close();
    refuseFolderSync("EIO");
    await expect(folder.rename("a", "b")).rejects.toMatchObject({ code: "EIO" });
  });

  test("is followed by a sync of the folder", async () => {
    await (await folder.create("a")).close();
    const synced = vi.fn();
    vi.mocked(open).mockImplementation(async (...words) => {
      const handle: FileHandle = await real(...words);
      const sync = handle.sync.bind(handle);
      handle.sync = () => {
        synced(words[0], readdirSync(path).includes("b"));
        return sync();
      };
      return handle;
    });
    await folder.rename("a", "b");
    expect(synced.mock.calls).toEqual([[path, true]]);
  });
});

/** Records which files and folders are synced. */
function noted(): string[] {
  const synced: string[] = [];
  vi.mocked(open).mockImplementation(async (...words) => {
    const handle: FileHandle = await real(...words);
    for (const method of ["sync", "datasync"] as const) {
      const act = handle[method].bind(handle);
      handle[method] = () => {
        synced.push(`${method} ${String(words[0])}`);
        return act();
      };
    }
    return handle;
  });
  return synced;
}

test("new folders are durable as soon as they exist", async () => {
  const synced = noted();
  await disk.makeFolder(join(path, "a", "b"));
  expect(synced).toEqual([`sync ${join(path, "a")}`, `sync ${path}`]);
  await disk.makeFolder(join(path, "a", "b"));
  expect(synced).toHaveLength(2);
});

describe("a durable write", () => {
  test.runIf(process.platform === "linux")("uses a handle on which each write is synced", async () => {
    const other = join(path, "durable");
    vi.mocked(open).mockImplementation((...words) =>
      typeof words[1] === "number" ? real(other, words[1] | constants.O_CREAT) : real(...words),
    );
    const file = await folder.create("a");
    expect((vi.mocked(open).mock.calls.at(-1)?.[1] as number) & constants.O_DSYNC).toBe(constants.O_DSYNC);
    await file.write(Buffer.from("lost"), 0);
    await file.writeDurably(Buffer.from("hello"), 0);
    expect(readFileSync(other, "utf8")).toBe("hello");
    await file.close();
  });

  test("is followed by a sync if there is no such handle", async () => {
    const synced = noted();
    const opening = vi.mocked(open).getMockImplementation() as typeof open;
    vi.mocked(open).mockImplementation((...words) =>
      typeof words[1] === "number" ? Promise.reject(refusal("EMFILE")) : opening(...words),
    );
    const file = await folder.create("a");
    await file.writeDurably(Buffer.from("hello"), 0);
    expect(synced).toEqual([`datasync ${join(path, "a")}`]);
    await file.close();
  });
});
