"""The prompts of the built-in suite that bring a text: to be summarised, or with mistakes to be put right.

Each is a wish with `{text}` in it and the text; the texts to be put right hold four to eight mistakes.
"""

from __future__ import annotations

TO_SUMMARISE: tuple[tuple[str, str], ...] = (
    (
        "Summarise this in two sentences.\n\n{text}",
        "The bell of St Brannoc's had not been rung for nineteen years, because the frame that carries it was full of "
        "woodworm. Repairs would have cost more than the parish takes in a decade. Last autumn a joiner from the next "
        "valley offered to build a new frame for the price of the oak, provided that he could ring the bell once at "
        "his own wedding. The parish agreed. The frame was finished in May, and the wedding took place in June, in "
        "pouring rain. The bell can now be rung by hand again, on Sundays and on request, though the neighbours have "
        "asked that it stay silent before nine.",
    ),
    (
        "whats this saying? keep it under 30 words pls\n\n{text}",
        "Dear members, after a long discussion the committee has decided not to raise the yearly fee. Instead we'll "
        "close the sauna on weekdays before three, when hardly anybody uses it, and replace the old lamps in the "
        "hall. Together this saves about four thousand a year, which covers the new roof within six years. The "
        "changing rooms on the left will be shut for tiling from the second to the ninth of March. If you keep a "
        "locker there, please empty it before the end of February; whatever we find afterwards goes to the box by the "
        "entrance. With kind regards, Fiona Maddox, treasurer.",
    ),
    (
        "{text}\n\nPlease write one sentence that says what the writer of this text wants, and one that gives the "
        "reasons.",
        "Everyone who cycles to the station knows the corner at Dyer's Lane. A hedge hides the road from the left, "
        "the surface slopes the wrong way, and in winter the shade keeps the ice until noon. I've counted seven falls "
        "there since October, one of them my own. Each time the council has answered that the corner meets the "
        "standard. That may be so, yet a standard written for cars says little about a narrow tyre. A mirror and a "
        "cart of gritting salt would cost less than a single broken wrist. Must we wait until somebody is run over "
        "before a person with a key to the depot takes a look?",
    ),
    (
        "Give me the three most important facts from this text, as a numbered list:\n\n{text}",
        "Sphagnum moss can hold twenty times its own weight in water, and it keeps doing so after it has died. Layer "
        "by layer it builds a raised bog, which grows by about a millimetre a year. Since hardly any oxygen reaches "
        "the lower layers, nothing there rots: pollen, wooden tracks and even human skin have come out of the peat "
        "after thousands of years. When a bog is drained, air gets in and the stored carbon escapes. Blocking the "
        "ditches with simple dams stops this within a season or two, although the moss needs decades to close over "
        "the scars that the diggers left.",
    ),
    (
        'I was away when this was sent round. What did I miss and what do I have to do?\n\n"{text}"',
        "Quick note from Wednesday: the launch moves from the 3rd to the 17th, since the payment people need another "
        "round of tests. Ines takes over the help pages from Tariq, who is on leave until the end of the month. "
        "Nobody objected to the shorter sign-up form, so it stays. The open question is the price for schools. "
        "Everybody sends me a number and a reason by Monday at noon, and I'll put them side by side without names. "
        "Please also check that your own out-of-hours number in the list is right; two of them rang at a kebab shop "
        "when we tried. Cheers, Moira",
    ),
    (
        "Summarize the following passage for the back cover of a book, without giving away its end.\n\n{text}",
        "Harriet Quill repairs barometers in a harbour town where the weather is never wrong, or so the people say. "
        "One morning all of her instruments fall at once, though the sky stays clear for a week. She's laughed at, "
        "then shunned, and at last paid by the mayor to let the needles rise by hand before the regatta. She takes "
        "the money. What she doesn't know is that her brother has signed on to one of the boats. In the closing "
        "chapter the storm arrives a day late and finds the harbour empty, for Harriet has rung the fire bell at dawn "
        "and sent everybody up the hill.",
    ),
    (
        "Condense this into a single tweet (280 characters at most): {text}",
        "For eleven months, volunteers in four cities wrote down how long they had to stand at pedestrian crossings. "
        "Altogether they collected 92,000 waits. The average was thirty-eight seconds, but it hid large differences: "
        "crossings near offices turned green after twenty-one seconds, those near retirement homes after fifty-five. "
        "More than a third of the people walked on red once they had waited for a minute. Where a display counted the "
        "seconds down, only one in ten did. The group now asks that such displays be fitted wherever a wait is longer "
        "than forty seconds, beginning with the routes that children take to school.",
    ),
    (
        "Read the recipe note below and tell me in one short paragraph what went wrong and what the writer would do "
        "differently.\n\n{text}",
        "Third try at the quince jelly. I cut the fruit smaller this time and simmered it for an hour, which gave a "
        "lovely deep colour. Then I got impatient and squeezed the cloth instead of letting it drip overnight, and so "
        "the juice turned cloudy. I used the sugar that was left in the jar, maybe two thirds of what the book says. "
        "It did not set, not even after a second boil with lemon. It tastes wonderful on pancakes, though, so I've "
        "written 'syrup' on the labels and shall say it was meant. Next October: hang the cloth up, go to bed, buy "
        "sugar first.",
    ),
)

TO_FIX: tuple[tuple[str, str], ...] = (
    (
        "Correct the spelling and grammar of this message. Change nothing else and give me only the result.\n\n{text}",
        "Hello Mrs Abara, I am sorry but we cannot come to the parents evening on thursday because both of us has to "
        "work late. Nadia told us that she will get a new maths teacher after the hollidays. Could you tell us who it "
        "will be, and weather the extra lessons on Mondays go on? She has enjoyed them alot. We would also like to "
        "know how she behaves in class, since at home she says that everything is fine, as children do. If a short "
        "call suits you better then a letter, please ring us any day after six. Thank you for your help.",
    ),
    (
        "can u fix the mistakes in my post before i embarass myself\n\n{text}",
        "Found on the towpath this morning: one grey parrot, very tame and very rude. It were sitting on the handle "
        "of a wheelbarrow and shouting at the ducks. I have took it home and given it some aple, which it threw at "
        "the cat. It knows the first line of at least two hymns and a word that I wont repeat here. If it's yours, "
        "please send me a message and discribe the ring on its left foot, so I know that your the owner. My husband "
        "would like me to add that you should hurry, and the cat would like that to.",
    ),
    (
        "Please proofread the paragraph between the lines and return it with all errors corrected.\n---\n{text}\n---",
        "The museum of locks and keys are hidden in a side street behind the fish market. Most visitors find it by "
        "accident, while they look for somewhere to eat. Inside, three small rooms holds more than nine hundred "
        "locks, from a wooden bolt of the Bronze age to a safe that no burgler has ever opened. The owner, a retired "
        "locksmith, shows every guest around personaly and let them try to pick a simple padlock. Those who succeed "
        "may keep it. According to him, only fourty people have managed it since the museum opened, and half of them "
        "was children under twelve.",
    ),
    (
        "{text}\n\n^ Fix the typos and the punctuation, please. Keep my style, it is meant to sound casual.",
        "so we finaly did it, we swapped the car for a cargo bike. the first week was horrible, my legs felt like wet "
        "string and I was late for everything. by the third week something changed though. the kids sing all the way "
        "to nursery, I know the names of four dogs and I havn't looked for a parking space in a month. the only thing "
        "we miss is the big shop on Saturdays, because you can't realy carry twelve bottles of water and two "
        "childrens. would we do it again? definately. would I recomend it to somebody who lives on a hill? ask me in "
        "december.",
    ),
    (
        "I'm not a native speaker. Could you correct my text so that it can go to the printer? Only the corrected "
        "text, please.\n\n{text}",
        "Welcome in our small hotel! Since 1987 my family is taking care of guests from all over the world. Breakfast "
        "is served from seven until ten in the garden, or in the dining room when it is raining. If you want to make "
        "a excursion, ask please at the reception for the map of the old mule paths. The most beautiful one begins "
        "directly behind our house and needs about two hours. Towels for the beach you find in the cupboard near of "
        "the stairs. We kindly ask you not to take the informations folder out of the room. We wish you a pleasant "
        "stay.",
    ),
    (
        "Fix every mistake in this report, then write it out in full.\n\n{text}",
        "On Tuesday at about ten past four, I was driving along Foundry Road when a delivery van pulled out of a yard "
        "with out looking. I breaked as hard as I could, but the road was wet and my car slided into its back door. "
        "Neither of us were hurt. The other driver said at first that he had seen me, and than that he had not. Two "
        "people at the bus stop saw what happend and have given me they're telephone numbers. My left headlight is "
        "broken and the bonnet does not shut properly. I enclose four photographs, which I took before the cars was "
        "moved.",
    ),
    (
        "Here is what my grandson wrote for the local paper. Would you kindly correct it? He's eleven, so please "
        "leave his words as they are and only mend what is wrong.\n\n{text}",
        "Last weekend our scout group cleaned the banks of the mill stream. We was fifteen children and four "
        "grown-ups. At the begining everybody wanted to have the long grabbers, so we had to take turns. I found a "
        "boot, a frying pan and a half bycicle. Jamie found a bottle with a letter in it, but it was only a shopping "
        "list. In the end their were eleven bags full of rubbish, and the man from the council sayed he had never "
        "seen so much. Afterwards we all got sausages. I think people who throws things in the stream should have to "
        "come along next time.",
    ),
    (
        "Rewrite the following notice without its errors. Answer with the notice only.\n\n{text}",
        "Dear neighbours, from Monday on there will be a scaffold on the south side of the building, as the gutters "
        "has to be replaced. The work will take about three weeks, if the weather permit. Please take everything of "
        "your balconys, and keep the windows closed while the men are working, because there will be alot of dust. "
        "The bicycle shed can be reached trough the cellar during this time. The skip in the yard is for the builders "
        "only; it's not ment for old furniture. If you have any questions, ring me at any time accept on Sundays. "
        "Your caretaker, Mr Lindqvist",
    ),
)


def _filled(wishes: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return tuple(wish.replace("{text}", text) for wish, text in wishes)


SUMMARISE = _filled(TO_SUMMARISE)
FIX = _filled(TO_FIX)
