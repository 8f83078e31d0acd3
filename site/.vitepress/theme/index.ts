/** The default theme with our palette and fonts, and live runs. */
import { useData } from "vitepress";
import DefaultTheme from "vitepress/theme";
import { watchEffect } from "vue";
import LiveRun from "./LiveRun.vue";
import "./theme.css";

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }: { app: { component(name: string, component: unknown): unknown } }) =>
    void app.component("LiveRun", LiveRun),
  setup() {
    const { isDark } = useData();
    // The laboratory, on the same origin, reads its theme under this key.
    watchEffect(() => {
      if (typeof localStorage === "undefined") return;
      localStorage.setItem("coterie.theme", isDark.value ? "dark" : "light");
    });
  },
};
