import { describe, expect, it } from "vitest";
import { checkLinearizability, type Finding } from "./check.ts";
import type { History } from "./history.ts";
import { modelNamed } from "./model.ts";
import { drawText } from "./picture.ts";
import { readJepsenHistory } from "./readers.ts";

/** A read that returns an overwritten value. */
const STALE_READ = `
  {:process 0, :type :invoke, :f :write, :value 1}
  {:process 0, :type :ok, :f :write, :value 1}
  {:process 1, :type :invoke, :f :read}
  {:process 2, :type :invoke, :f :write, :value 2}
  {:process 1, :type :ok, :f :read, :value 1}
  {:process 0, :type :invoke, :f :cas, :value [2 3]}
  {:process 3, :type :invoke, :f :write, :value 4}
  {:process :nemesis, :type :info, :f :partition, :value :majority}
  {:process 2, :type :ok, :f :write, :value 2}
  {:process 1, :type :invoke, :f :read}
  {:process 1, :type :ok, :f :read, :value 2}
  {:process 3, :type :info, :f :write, :value 4}
  {:process 0, :type :ok, :f :cas, :value [2 3]}
  {:process 2, :type :invoke, :f :read}
  {:process 1, :type :invoke, :f :read}
  {:process 1, :type :ok, :f :read, :value 3}
  {:process 2, :type :ok, :f :read, :value 2}
  {:process 3, :type :invoke, :f :read}
  {:process 3, :type :ok, :f :read, :value 3}`;

const QUEUE = `
  {:process 0, :type :invoke, :f :enqueue, :value a}
  {:process 1, :type :invoke, :f :enqueue, :value b}
  {:process 0, :type :ok, :f :enqueue}
  {:process 1, :type :ok, :f :enqueue}
  {:process 0, :type :invoke, :f :dequeue}
  {:process 0, :type :info, :f :dequeue}
  {:process 0, :type :invoke, :f :enqueue, :value c}
  {:process 1, :type :invoke, :f :dequeue}
  {:process 0, :type :ok, :f :enqueue}
  {:process 1, :type :ok, :f :dequeue, :value a}
  {:process 1, :type :invoke, :f :dequeue}
  {:process 1, :type :ok, :f :dequeue, :value c}
  {:process 2, :type :invoke, :f :dequeue}
  {:process 2, :type :ok, :f :dequeue}`;

function pictured(text: string, model: string): { finding: Finding; history: History } {
  const history = readJepsenHistory(text);
  const [finding] = checkLinearizability(history, modelNamed(model)).findings as [Finding];
  return { finding, history };
}

describe("pictures", () => {
  it.each([
    ["stale-read", "register", STALE_READ],
    ["queue", "queue", QUEUE],
  ])("of %s", async (name, model, text) => {
    const { finding, history } = pictured(text, model);
    const options = { model, remarks: history.remarks };
    await expect(drawText(finding, options)).toMatchFileSnapshot(`golden/${name}.txt`);
  });

  it("of a long history show the important part and list the omissions", () => {
    const write = (at: number): string =>
      `{:process 0, :type :invoke, :f :write, :value ${at}} {:process 0, :type :ok, :f :write}`;
    const read = "{:process 1, :type :invoke, :f :read} {:process 1, :type :ok, :f :read, :value 77}";
    const writes = Array.from({ length: 100 }, (_, at) => write(at));
    const { finding } = pictured([...writes, read, ...writes].join("\n"), "register");
    const text = drawText(finding, { model: "register", maxOperations: 8 });
    expect(text).toMatch(/\(93 earlier operations left out\)\n\(100 later operations left out\)/);
    expect(text).toContain("read → 77 ✗");
    expect(text).toContain("write 99");
    expect(text).not.toContain("write 42");
  });

  it("of an unknown result state that it is not a pass", () => {
    const writes = Array.from({ length: 30 }, (_, at) => `{:process ${at}, :type :invoke, :f :write, :value ${at}}`);
    const returns = writes.map((write) => write.replace(":invoke", ":ok"));
    const read = ["{:process 99, :type :invoke, :f :read}", "{:process 99, :type :ok, :f :read, :value 99}"];
    const history = readJepsenHistory([...writes, ...read, ...returns].join("\n"));
    const { findings } = checkLinearizability(history, modelNamed("register"), { maxSteps: 1_000 });
    const text = drawText(findings[0] as Finding, { model: "register" });
    expect(text).toContain("register: unknown");
    expect(text).toContain("This is not a pass");
  });

  it("of empty histories are valid", () => {
    const nothing: Finding = { verdict: "holds", key: undefined, operations: [], linearization: [] };
    expect(drawText(nothing, { model: "register" })).toContain("linearizable");
  });
});
