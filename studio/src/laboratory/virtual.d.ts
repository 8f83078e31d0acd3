declare module "virtual:catalogue" {
  const catalogue: import("./catalogue.ts").Catalogue;
  export default catalogue;
}
