import { expect, test, vi } from "vitest";
import { textReport } from "./up.ts";

test("does not restart a member that exits with code 2, and reports the reason", () => {
  const said: string[] = [];
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => said.push(String(text)) > 0);
  try {
    const where = { studio: null, admin: "http://127.0.0.1:7400", port: 7_400 };
    const { onEvent } = textReport({ name: "demo", protocol: "bully", restart: true, ...where });
    const common = { event: "exited", node: 2, pid: 4_711, signal: null } as const;
    onEvent({ ...common, code: 2, restartInMs: null });
    onEvent({ ...common, code: 1, restartInMs: 2_000 });
  } finally {
    write.mockRestore();
  }
  expect(said.join("")).toContain(
    "node 2 ended with exit code 2; it is not restarted, because the same error would occur again: see its log\n",
  );
  expect(said.join("")).toContain("node 2 ended with exit code 1; it restarts in 2 s\n");
});
