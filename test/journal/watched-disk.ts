/** The machine's disk for tests that observe or replace the operations of a journal. */
import { vi } from "vitest";
import type { Disk, DiskFile } from "../../src/runtime/platform/platform.ts";
import { realPlatform } from "../../src/runtime/platform/real.ts";

/** Returns a disk whose files call the mock for one operation. By default, the mock performs the operation. */
export function watchedDisk(method: "write" | "writeDurably" | "datasync" | "sync") {
  const asked = vi.fn((act: () => Promise<void>) => act());
  const watched = (file: DiskFile): DiskFile => ({
    ...file,
    [method]: (bytes: Buffer, at: number) => asked(() => file[method](bytes, at)),
  });
  const { disk } = realPlatform;
  const claim: Disk["claim"] = async (path) => {
    const folder = await disk.claim(path);
    const open = async (name: string) => {
      const file = await folder.open(name);
      return file && watched(file);
    };
    return { ...folder, open, create: async (name) => watched(await folder.create(name)) };
  };
  return { asked, platform: { ...realPlatform, disk: { ...disk, claim } } };
}
