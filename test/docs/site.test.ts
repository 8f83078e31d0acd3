/**
 * Checks that the sidebar of the documentation site contains every page of docs/ once, except the front page,
 * docs/internals and the translations.
 */
import { readdirSync } from "node:fs";
import { sep } from "node:path";
import { expect, test } from "vitest";
import { docs, sections, titleOf } from "../../site/.vitepress/sidebar.ts";

const OUTSIDE = /^(?:index$|internals\/|(?:es|pt|ru)\/)/;

test("the sidebar lists every page once", () => {
  const pages = readdirSync(docs, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .map((file) => file.replace(/\.md$/, "").split(sep).join("/"))
    .filter((page) => !OUTSIDE.test(page));
  const listed = Object.values(sections).flatMap((groups) => groups.flatMap((group) => group.pages));
  expect(listed.toSorted()).toEqual(pages.toSorted());
});

test("each page has a title", () => {
  const listed = Object.values(sections).flatMap((groups) => groups.flatMap((group) => group.pages));
  expect(listed.filter((page) => titleOf(page) === "")).toEqual([]);
});
