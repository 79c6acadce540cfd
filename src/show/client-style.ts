// The part of the style sheet for what the script of a served page adds: drawn charts, buttons in tables, messages. Pure.

export const CLIENT_STYLE = `
.drawing{display:grid;grid-template-columns:minmax(0,1fr) 14rem;gap:.5rem 1.5rem;margin-bottom:.5rem}
.plot{min-height:19rem;min-width:0;contain:size}
.legend{margin:0;padding:0;list-style:none;font-size:.85rem}
.legend li{display:flex;align-items:baseline;gap:.25rem}
.legend li>.swatch{margin:0 .4rem 0 .25rem}
.drawing bdi{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden}
.tip th>span{display:flex;align-items:baseline}
.legend a{padding:.2rem .4rem;text-decoration:none}
.legend button,.sort{font:inherit;color:inherit;background:none;border:0;border-radius:4px;padding:.2rem .25rem;text-align:inherit;cursor:pointer}
.legend button{display:flex;align-items:baseline;min-width:0}
.legend button[aria-pressed=false]{color:var(--soft);text-decoration:line-through}
.legend button[aria-pressed=false] .swatch{opacity:.3}
.sort{margin:-.2rem -.25rem}
.sort:hover,.legend button:hover{background:var(--wash);color:var(--ink)}
[aria-sort=ascending] .sort::after{content:" ↑" / ""}
[aria-sort=descending] .sort::after{content:" ↓" / ""}
.swatch{flex:none;display:inline-block;width:.75rem;height:.75rem;margin-right:.4rem;border-radius:2px;background:currentColor}
.swatch.before{height:0;border-top:2px dashed;border-radius:0;background:none;align-self:center}
.swatch.hatched{background:repeating-linear-gradient(-45deg,var(--hatch) 0 1.5px,var(--wash) 1.5px 5px)}
.tip>div{max-width:24rem;padding:.6rem .8rem;border:1px solid var(--line);border-radius:4px;background:var(--paper);color:var(--ink);font-size:.85rem;white-space:normal}
.tip table{width:auto;min-width:0;font-size:inherit}
.tip :is(th,td){padding:.15rem 1rem .15rem 0;border:0}
.tip :is(th,td):last-child{padding-right:0;text-align:right;white-space:nowrap}
.tip p{margin:0;color:var(--soft)}
.live{margin:0}
.live.stale{margin:1rem 0 0;padding:.9rem 1.1rem;border-left:3px solid var(--warn);background:var(--wash)}
.copy{font:inherit;font-size:.9rem;color:inherit;background:var(--wash);border:1px solid var(--soft);border-radius:4px;padding:.2rem .6rem;cursor:pointer}
[data-copied]::after{content:" ✓ copied"}
.sql pre{overflow-x:auto;padding:.75rem;background:var(--wash);font-size:.8rem;white-space:pre-wrap}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@media (max-width:45rem){
.drawing{grid-template-columns:minmax(0,1fr)}
.legend{display:flex;flex-wrap:wrap;gap:0 .75rem}
}
@media print{.live,.copy,.legend a{display:none}.sort{margin:0;padding:0}}
`;
