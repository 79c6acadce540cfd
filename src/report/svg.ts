// Turns the chart library's SVG into one for our pages: many on one page, under a strict policy, in light and dark. Pure.

/**
 * What is taken out or turned: ids get the prefix, so that no two charts share one; the style sheet for the mouse and the
 * classes go; `style` attributes, which the policy forbids, become attributes. Only tags are touched: in texts the library
 * escapes what could be one, and no text from outside is in an attribute (colours and our own ids are).
 */
export function pageSvg(svg: string, id: string, className: string, labelledBy: string): string {
  return svg
    .replace(/<style[\s\S]*?<\/style>/, "")
    .replaceAll(/<[^>]+>/g, (tag) => cleanTag(tag, id))
    .replace(
      /^<svg[^>]*?viewBox="([^"]*)"[^>]*>/,
      (_, viewBox: string) =>
        `<svg class="${className}" role="img" aria-labelledby="${labelledBy}" viewBox="${viewBox}">`,
    )
    .replaceAll(/>\s*\n\s*</g, "><");
}

function cleanTag(tag: string, id: string): string {
  return tag
    .replaceAll(/ (class|pointer-events|ecmeta_\w+|xmlns:xlink|xml:space)="[^"]*"/g, "")
    .replace(/ style="([^"]*)"/, (_, style: string) => attributes(style))
    .replaceAll(/\bzr\d+-/g, `${id}-`);
}

/** The page says which typeface; size and weight are the chart's. */
function attributes(style: string): string {
  return style
    .split(";")
    .map((declaration) => declaration.split(":").map((part) => part.trim()))
    .filter(([name = ""]) => name === "font-size" || name === "font-weight")
    .map(([name, value]) => ` ${name}="${value?.replace("px", "")}"`)
    .join("");
}
