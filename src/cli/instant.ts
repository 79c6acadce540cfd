// How an instant is shown to a person: to the minute, in UTC as the days of usage are.

export function instant(moment: Date): string {
  return `${moment.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
