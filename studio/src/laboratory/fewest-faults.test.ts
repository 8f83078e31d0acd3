import { expect, test } from "vitest";
import { TestedLaboratory } from "./engine/laboratory-under-test.ts";
import { askingFewest, faultsText } from "./fewest-faults.ts";

test("requests crashes and losses, unless the form specifies faults", () => {
  expect(askingFewest({ protocol: "bully", strategy: "dfs" })).toEqual({
    protocol: "bully",
    crashes: "2",
    losses: "2",
    fewestFaults: "on",
  });
  expect(askingFewest({ protocol: "bully", recoveries: "1", crashes: "1" })).toMatchObject({
    crashes: "1",
    recoveries: "1",
  });
});

test("describes the result", () => {
  expect(faultsText({ breaking: 1, harmless: 0 })).toBe(
    "One fault is enough to break it. Without faults, nothing breaks.",
  );
  expect(faultsText({ breaking: 3, harmless: 2 })).toBe(
    "3 faults are enough to break it. With up to 2 faults, nothing breaks.",
  );
  expect(faultsText({ breaking: 2, harmless: 0 })).toBe("2 faults are enough to break it. Fewer may be enough, too.");
  expect(faultsText({ breaking: 0, harmless: -1 })).toBe("It breaks without any fault.");
  expect(faultsText({ breaking: null, harmless: 2 })).toBe("With up to 2 faults, nothing breaks.");
  expect(faultsText({ breaking: null, harmless: -1 })).toBe("No number of faults was explored completely.");
});

test("reports the fewest faults of a check, and does not repeat the search for its counterexample", async () => {
  const laboratory = new TestedLaboratory();
  const words = askingFewest({ protocol: "ricart-agrawala", nodes: "2" });
  const found = await laboratory.check(words);
  expect(found.faults).toEqual({ breaking: 1, harmless: 0 });
  const progress: number[] = [];
  const run = await laboratory.run({ ...words, counterexample: "1" }, ({ states }) => void progress.push(states));
  expect(run.properties.some(({ step }) => step !== null)).toBe(true);
  expect(progress.every((states) => states === 0)).toBe(true);
});
