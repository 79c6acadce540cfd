// The one style sheet of a page, and its colours for light and dark. Text contrasts with its background by at least 4.5 to 1, bars and marks
// by 3 to 1 except the pale `complete` and the expected part of a budget. People who can't see red, green or blue can tell a chart's series apart.

/** Each colour on a light and on a dark page. */
export const COLOURS = {
  paper: ["#fcfbf9", "#15181c"],
  wash: ["#f3f1ed", "#1d2126"],
  line: ["#dedad3", "#343a41"],
  ink: ["#1d2125", "#e9e7e3"],
  soft: ["#575d63", "#a9afb6"],
  accent: ["#2463ad", "#7db2ee"],
  good: ["#1f6b45", "#7cc9a0"],
  warn: ["#8a5300", "#e5ae5e"],
  bad: ["#a3262a", "#f2938c"],
  "bad-wash": ["#fbeeea", "#2c1c1b"],
  /** The pale fill: complete days in a bar of days (most are), the expected part of a budget, and shares in small tables. */
  complete: ["#c9d8e6", "#2f4660"],
  /** Marks days whose numbers are not complete. */
  hatch: ["#858b92", "#7f868d"],
  /** The remaining groups of a chart, added up (only the largest have a colour of their own), and days with older numbers. */
  rest: ["#5b5f63", "#a2a6ab"],
  "series-1": ["#2463ad", "#5b9fe6"],
  "series-2": ["#cf7a1c", "#ea9943"],
  "series-3": ["#0c9ca6", "#608e8d"],
  "series-4": ["#701a3b", "#fcbbba"],
  "series-5": ["#a279e5", "#8150b7"],
  "series-6": ["#92392a", "#e3ee8b"],
  "series-7": ["#5c8865", "#d4690f"],
  "series-8": ["#462e76", "#1c7273"],
} as const;

function customProperties(scheme: 0 | 1): string {
  return Object.entries(COLOURS)
    .map(([name, shades]) => `--${name}:${shades[scheme]};`)
    .join("");
}

/** Printed pages are always light, and show what is folded on a screen. */
export const STYLE = `
:root{color-scheme:light dark;${customProperties(0)}}
@media screen and (prefers-color-scheme:dark){:root{${customProperties(1)}}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
@media (prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
body{margin:0 auto;max-width:96rem;padding:.75rem 2rem .5rem;background:var(--paper);color:var(--ink);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
h1,h2,h3{line-height:1.2;font-weight:600;letter-spacing:-.01em;text-wrap:balance}
h1{margin:0;font-size:1.35rem}
h2{margin:0 0 .35rem;font-size:1.15rem}
h3{margin:0 0 .5rem;font-size:1rem}
p,ul{margin:0 0 .75rem}
ul{padding-left:1.2rem}
nav ul,.notice>ul,.choices,.budgets,.legend{margin:0;padding:0;list-style:none}
a{color:var(--accent);text-underline-offset:.2em}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
i,small,.subtitle,.change,.as-of,.note,.empty,footer,caption,thead th,dt{color:var(--soft)}
footer{margin-top:.2rem;padding-top:.5rem;border-top:1px solid var(--line);font-size:.8rem}
footer p,.lead p,.tip p,.as-of,.well{margin:0}
.unseen,#usage figcaption,.two-thirds figcaption,:is(.third,.quarter,.ranks) caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
/* The frame: navigation, whether all is well, and the choice of days and project. */
.bar,.heading,.title{display:flex;flex-wrap:wrap;align-items:baseline;gap:.25rem 1.25rem}
.bar{column-gap:2rem;margin:0 0 .5rem;padding:0 0 .5rem;border-bottom:1px solid var(--line)}
.brand{font-weight:600;color:var(--ink);text-decoration:none}
.as-of,.quarter thead th{font-size:.8rem}
nav{flex:1}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem}
nav a{padding-bottom:.5rem;text-decoration:none;color:var(--soft)}
nav a:hover{color:var(--accent);text-decoration:underline}
.bar [aria-current]{color:var(--ink);font-weight:600;border-bottom:2px solid var(--accent)}
.lead{margin:.25rem 0 .4rem}
.sentence{font-size:1.3rem;line-height:1.35;font-weight:600;letter-spacing:-.01em;text-wrap:pretty}
.heading{margin:.4rem 0 .3rem}
.subtitle{margin:.35rem 0 .75rem}
.heading .subtitle,.title h2{margin:0}
.links{margin:0 0 0 auto;font-size:.9rem}
.notice{margin:0 0 .5rem;padding:.35rem .9rem;border-left:3px solid var(--line);background:var(--wash)}
.notice a{color:inherit;text-decoration-color:var(--soft)}
.notice summary{width:auto;color:inherit}
.notice.bad{border-color:var(--bad);background:var(--bad-wash)}
.notice.warn{border-color:var(--warn)}
.notice.warn strong,.state.warn{color:var(--warn)}
.notice.bad strong,.state.bad,.flag{color:var(--bad)}
.well,.state.good{color:var(--good)}
.state{font-weight:600}
#verdict:has(.well){display:flex;flex-wrap:wrap;align-items:baseline;gap:0 1rem}
/* If all is well, reminders stand plainly beside the line that says so. */
.well~.notice{margin:0;padding-block:0;border:0;background:none}
.well~.notice strong{font-weight:400}
.well~.notice[open]{flex-basis:100%}
.toolbar,.toolbar form{display:flex;flex-wrap:wrap;align-items:center;gap:.5rem .75rem}
.toolbar{margin:0 0 .5rem}
section>.toolbar{justify-content:space-between;margin:.4rem 0 1rem}
.toolbar label{display:flex;align-items:center;gap:.4rem;color:var(--soft);font-size:.8rem}
.toolbar :is(input,select){min-width:0;max-width:10.5rem}
.toolbar input[type=date]{max-width:8.5rem}
.toolbar :is(input,select,button){font:inherit;font-size:.9rem;color:var(--ink);background:var(--paper);border:1px solid var(--soft);border-radius:4px;padding:.25rem .5rem;height:2.1rem}
.toolbar button,.copy{background:var(--wash);cursor:pointer}
.copy{font:inherit;font-size:.9rem;color:inherit;border:1px solid var(--soft);border-radius:4px;padding:.2rem .6rem}
[data-copied]::after{content:" ✓ copied"}
.choices{display:flex;flex-wrap:wrap;font-size:.9rem}
.choices a{display:block;padding:.25rem .7rem;min-height:2rem;line-height:1.5rem;border:1px solid var(--soft);margin-left:-1px;text-decoration:none;color:var(--soft)}
.choices li:first-child a{border-radius:4px 0 0 4px;margin:0}
.choices li:last-child a{border-radius:0 4px 4px 0}
.choices [aria-current]{color:var(--ink);font-weight:600;background:var(--wash)}
/* Sections. */
main{display:grid;grid-template-columns:repeat(12,minmax(0,1fr));gap:0 2rem}
section{grid-column:1/-1;min-width:0;padding-top:1rem}
main>:first-child,:is(.third,.quarter,.two-thirds){padding-top:.5rem}
.third{grid-column:span 4}
.quarter{grid-column:span 3}
.half{grid-column:span 6}
.two-thirds{grid-column:span 8}
.title{justify-content:space-between;margin:0 0 .35rem}
.title a,.sentence+p{font-size:.9rem}
.title .choices a{min-height:0;padding-block:0}
:is(.third,.quarter,.two-thirds) :is(.title,details){margin-block:0}
.two-thirds .title:has(.choices){margin-bottom:.25rem}
:is(.third,.quarter,.two-thirds) :is(.scroll,figure){margin:0}
.note,.empty{max-width:60rem;font-size:.9rem;text-wrap:pretty}
details{margin:.25rem 0 .75rem}
summary{cursor:pointer;color:var(--accent);width:fit-content}
.sql pre{overflow-x:auto;padding:.75rem;background:var(--wash);font-size:.8rem;white-space:pre-wrap}
/* Figures and budgets. */
.summary{display:grid;grid-template-columns:minmax(18.5rem,1fr) 4fr;gap:.5rem;margin-bottom:.4rem}
.summary:not(:has(.money)){grid-template-columns:1fr}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(8.5rem,1fr));gap:.75rem;margin:0 0 .5rem}
.summary :is(dl,dd),.figures dd{margin:0}
.summary .figures{display:flex;flex-wrap:wrap;gap:.5rem}
.summary :is(dt,.change){font-size:.85rem}
.summary .figures>div{flex:1 1 6.25rem;min-width:max-content;padding-inline:.5rem}
.summary .figures .figure{font-size:1.35rem}
#outcome .figures{grid-template-columns:repeat(auto-fit,minmax(10rem,1fr))}
.figures.few{grid-template-columns:repeat(3,minmax(0,20rem))}
.figures>div,.money>div{min-width:0;padding:.4rem .9rem .5rem;border:1px solid var(--line);border-radius:6px}
.figures dt a{color:inherit;text-decoration-color:var(--line)}
.figure{display:block;overflow-wrap:normal;font-size:1.5rem;line-height:1.3;font-weight:600;letter-spacing:-.02em}
.figures .change{display:block;font-size:.9rem}
.money>div{height:100%;border-color:var(--accent)}
.money .figure{font-size:2rem}
.money .figure a{color:inherit;text-decoration:none}
.budgets{font-size:.9rem}
.budgets li{display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 1rem;padding:.35rem 0 .45rem;border-bottom:1px solid var(--line)}
.budget{width:100%;height:.55rem;margin:.25rem 0 .1rem;background:var(--wash)}
.budget .used,.share rect{fill:var(--accent)}
.budget .expected,:is(.third,.quarter) .share rect{fill:var(--complete)}
.budget.near .expected{fill:var(--warn);opacity:.55}
.budget.over .used{fill:var(--bad)}
.budget.over .expected{fill:var(--bad);opacity:.4}
.budget .limit{fill:var(--ink)}
/* Tables. */
.scroll{overflow-x:auto;margin:.5rem 0 1rem}
table{border-collapse:collapse;width:max-content;min-width:100%;font-size:.9rem}
caption{text-align:left;padding:.25rem 0 .5rem}
th,td{padding:.4rem 1.25rem .4rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);font-weight:400}
:is(th,td):last-child{padding-right:0}
td{max-width:26rem}
thead th{border-bottom-color:var(--soft);vertical-align:bottom}
thead [aria-current]{color:var(--ink);font-weight:600}
thead [aria-current]::after{content:" ↓" / ""}
.n{text-align:right}
.n+:where(:not(.n)){padding-left:1.25rem}
bdi{white-space:pre-wrap}
:is(th,td)>bdi,small>bdi{display:inline-block;vertical-align:top;max-width:22rem}
th>small,td>small,td>details{display:block;margin:0;max-width:40rem}
#runs td>small{display:inline}
#jobs caption{display:none}
#causes table{width:100%;min-width:44rem}
#causes thead th{overflow-wrap:normal}
td summary{color:inherit;text-decoration:underline var(--soft);text-underline-offset:.2em}
td>details>bdi{display:block;margin-top:.25rem}
time,:is(.ranks,.third,.quarter) .n{white-space:nowrap}
.chips>span{display:inline-block;padding:0 .45em;background:var(--wash);border:1px solid var(--line);border-radius:3px}
.share{display:block;width:100%;min-width:6rem;height:.4rem;margin-top:.3rem}
.ranks table{width:100%;max-width:80rem}
.ranks th[scope=row]{min-width:8rem}
.ranks th[scope=row]>a{display:block;text-decoration:none}
:is(.third,.quarter) table{width:100%;font-size:.85rem}
:is(.third,.quarter) tbody th{width:100%;max-width:0}
:is(.third,.quarter) tbody a{display:block;color:inherit;text-decoration:none}
:is(.third,.quarter) tbody :is(th,a)>bdi{max-width:none;display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:3;overflow:hidden;line-height:1.2;padding-block:.1rem}
:is(.third,.quarter) th:first-child{position:relative;z-index:0;padding-left:.4rem}
:is(.third,.quarter) :is(td,th){padding:.2rem .4rem .2rem 0;line-height:1.4}
:is(.third,.quarter) .scroll+.note{margin:.3rem 0 0}
:is(.third,.quarter) .share{position:absolute;inset:.1rem 0;height:calc(100% - .2rem);margin:0;z-index:-1}
:is(.third,.quarter) .n{padding-left:.3rem}
.strip{display:block;width:12rem;min-width:100%;height:1.1rem;border-radius:2px;background:var(--wash)}
.key>span{margin-right:1rem;white-space:nowrap}
.complete{fill:var(--complete);color:var(--complete)}
.stale{fill:var(--rest);color:var(--rest)}
.suspect{fill:var(--warn);color:var(--warn)}
.missing{fill:var(--bad);color:var(--bad)}
.not-due{fill:var(--wash);color:var(--wash)}
/* Charts. */
figure{margin:0 0 1rem}
.drawing{display:grid;grid-template-columns:minmax(0,1fr) 16rem;gap:.5rem 1.5rem;margin-bottom:.5rem}
.plot{min-height:19rem;min-width:0;contain:size}
.two-thirds .plot{min-height:10rem}
.legend{font-size:.85rem}
.legend li{display:flex;align-items:baseline;gap:.25rem}
.drawing bdi{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden}
.legend a,.tip th>span{display:flex;flex:1;align-items:baseline;min-width:0;color:inherit;text-decoration:none}
.legend a{padding:.15rem 0}
:is(.ranks,.legend,.third tbody,.quarter tbody) a:hover{text-decoration:underline}
.two-thirds .legend{font-size:.8rem;line-height:1.4}
.two-thirds .legend a{padding-block:0}
.swatch{flex:none;display:inline-block;width:.75rem;height:.75rem;margin-right:.4rem;border-radius:2px;background:currentColor}
.swatch.before{height:0;border-top:2px dashed;border-radius:0;background:none;align-self:center}
.swatch.hatched{background:repeating-linear-gradient(-45deg,var(--hatch) 0 1.5px,var(--wash) 1.5px 5px)}
.tip>div{max-width:24rem;padding:.6rem .8rem;border:1px solid var(--line);border-radius:4px;background:var(--paper);color:var(--ink);font-size:.85rem;white-space:normal}
.tip table{width:auto;min-width:0;font-size:inherit}
.tip :is(th,td){padding:.15rem 1rem .15rem 0;border:0}
.tip :is(th,td):last-child{padding-right:0;text-align:right;white-space:nowrap}
@media (max-width:64rem){
.summary{grid-template-columns:minmax(0,1fr)}
.third,.quarter{grid-column:span 6}
.two-thirds{grid-column:1/-1}
nav{flex-basis:100%;order:1}
.money>div{display:flex;flex-wrap:wrap;align-items:baseline;gap:0 1rem}
#why{grid-column:1/-1}
#groups{order:1}
}
@media (max-width:45rem){
.third,.quarter,.half{grid-column:1/-1}
body{padding:1rem 1rem 2rem}
caption{position:sticky;left:0;max-width:calc(100vw - 2rem)}
.links{margin:0}
.figures{gap:.5rem}
.drawing{grid-template-columns:minmax(0,1fr)}
.summary .figures{display:grid;grid-template-columns:1fr 1fr}
.summary .figures>div{min-width:0}
.few>div{padding-inline:.5rem}
.few .figure{font-size:1.25rem}
.legend{display:flex;flex-wrap:wrap;gap:0 .75rem}
.stacked :is(table,caption,tbody,th,td){display:block;width:auto}
.stacked :is(thead,td:empty),.stacked td:has(.strip)::before{display:none}
#causes table{min-width:0}
.stacked tr{display:flex;flex-wrap:wrap;gap:0 1rem;padding:.5rem 0;border-bottom:1px solid var(--line)}
.stacked :is(th,td){min-width:0;max-width:100%;padding:0;border:0;text-align:left}
.stacked th{font-weight:600}
.stacked th>small{font-weight:400}
.stacked :is(th,td:has(.strip)){flex-basis:100%}
.stacked td>details{display:inline-block}
.stacked td::before{content:attr(data-title) " ";color:var(--soft)}
.stacked td>small{display:inline}
.share{min-width:3.5rem}
:is(th,td){padding-right:.9rem}
.ranks :is(th,td){padding-right:.5rem;font-size:.8rem}
.ranks th[scope=row]{min-width:6.5rem}
/* A phone has no room for all five columns of a comparison: Before is left out. */
.ranks :nth-child(3):nth-last-child(3){display:none}
.ranks thead .n{white-space:normal;overflow-wrap:normal}
.ranks :is(bdi,.chips){max-width:8rem}
.choices{gap:.3rem}
.choices li a{margin:0;border-radius:4px}
.toolbar>form{width:100%}
header .choices{gap:0;width:100%}
header .choices li{flex:1 0 auto}
header .choices li a{padding-inline:.15rem;margin-left:-1px;border-radius:0;font-size:.85rem;text-align:center}
.toolbar label{flex:1 1 9rem;white-space:nowrap}
.toolbar label:has(select){flex-direction:column;align-items:stretch;gap:0}
.toolbar button{flex:1;align-self:end;white-space:nowrap}
.toolbar :is(input,select){width:100%;max-width:none}
}
@media print{
@page{margin:14mm}
body{max-width:none;padding:0;font-size:10pt}
nav,summary,.toolbar,.title :is(a,.choices),.links,.copy,.sql{display:none}
section{padding-top:1.5rem}
h2,h3,caption,figcaption,.note{break-after:avoid}
.drawing,.notice,.note,.figures,tr{break-inside:avoid}
.scroll{overflow:visible}
table{font-size:7pt;width:100%}
:is(th,td){padding:.12rem .5rem .12rem 0}
.share{min-width:3rem;margin-top:.15rem}
details::details-content{display:block;content-visibility:visible;block-size:auto}
a{color:inherit;text-decoration:none}
.share,.drawing,.notice,.strip,.swatch{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
`;
