/**
 * docs/images/ack-implosion.svg is what `coterie bench ack-implosion` measures today.
 * `npm run pages -- ack-implosion` draws it anew.
 *
 * @module-tag long
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { measured, methods } from "../../bench/ack-implosion/figures.ts";
import { picture } from "../../bench/ack-implosion/picture.ts";
import { PROCESSING, SIZES } from "../../bench/ack-implosion/settings.ts";

const file = fileURLToPath(new URL("../../docs/images/ack-implosion.svg", import.meta.url));

test("the picture of the acknowledgements at a sender is what a run says", () => {
  const figures = methods.flatMap((method) =>
    SIZES.filter((nodes) => nodes <= method.maxNodes).map((nodes) => measured(method, nodes, PROCESSING)),
  );
  for (const { method, nodes, acknowledgements } of figures)
    expect(acknowledgements, `${method}, N = ${nodes}`).toBe(method.endsWith("all speak") ? 0 : nodes - 1);
  const drawn = picture(figures, PROCESSING);
  if (process.env.COTERIE_WRITE_PAGE === "1") writeFileSync(file, drawn);
  expect(readFileSync(file, "utf8")).toBe(drawn);
});
