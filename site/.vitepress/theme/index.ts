/** The default theme with our palette, our fonts and live runs. */
import { useData, withBase } from "vitepress";
import DefaultTheme from "vitepress/theme";
import { h, watchEffect } from "vue";
import LiveRun from "./LiveRun.vue";
import "./theme.css";

/** The page for an unknown address. */
const notFound = () =>
  h("main", { class: "not-found" }, [
    h("h1", { class: "not-found-title" }, "Page not found"),
    h("p", ["Search for it above, or start at the ", h("a", { href: withBase("/") }, "front page"), "."]),
  ]);

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { "not-found": notFound }),
  enhanceApp: ({ app }: { app: { component(name: string, component: unknown): unknown } }) =>
    void app.component("LiveRun", LiveRun),
  setup() {
    const { isDark } = useData();
    // The laboratory, on the same origin, reads its theme from this key.
    watchEffect(() => {
      if (typeof localStorage === "undefined") return;
      localStorage.setItem("coterie.theme", isDark.value ? "dark" : "light");
    });
  },
};
