// Lets a program that runs on node believe that it is two minutes later.
const Now = Date;
const ahead = 120_000;

globalThis.Date = class Date extends Now {
  constructor(...given) {
    if (given.length) super(...given);
    else super(Now.now() + ahead);
  }

  static now() {
    return Now.now() + ahead;
  }
};
