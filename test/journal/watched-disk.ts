/** The machine's disk for tests that look at what a journal does with it, or do something else in its place. */
import { vi } from "vitest";
import type { Disk, DiskFile } from "../../src/runtime/platform/platform.ts";
import { realPlatform } from "../../src/runtime/platform/real.ts";

/** Its files call the mock as they are to do one thing; it does that, unless told otherwise. */
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
