/* SPDX-License-Identifier: Apache-2.0 */
#include "cn/epoch.h"

#include <criterion/criterion.h>

static uint64_t pins_oldest(void *arg)
{
	return atomic_load(&((struct pins *)arg)->oldest);
}

static void open_epoch(struct epoch *epoch, struct pins *pins, uint64_t newest)
{
	struct load load = {.epoch = newest, .safe_epoch = newest - 1};

	epoch_init(epoch, &load);
	pins_init(pins);
}

Test(epoch, first_operation_leaves_idle_and_must_report)
{
	struct epoch epoch;
	struct pins pins;
	uint64_t pinned;

	open_epoch(&epoch, &pins, 10);
	cr_assert(epoch_needs_report(&epoch));
	cr_assert(pins_take(&pins, &epoch, &pinned));
	cr_assert_eq(pinned, 10);
	epoch_confirm(&epoch, atomic_load(&epoch.activation));
	cr_assert_not(epoch_needs_report(&epoch));
}

Test(epoch, report_is_never_above_a_pin)
{
	struct epoch epoch;
	struct pins pins;
	uint64_t first, second;

	open_epoch(&epoch, &pins, 10);
	cr_assert(pins_take(&pins, &epoch, &first));
	epoch_load_arrived(&epoch, &(struct load){.epoch = 12, .safe_epoch = 9}, 1);
	cr_assert_eq(epoch_begin_report(&epoch, pins_oldest, &pins), 10);
	cr_assert(pins_take(&pins, &epoch, &second));
	cr_assert_eq(second, 12,
		     "a new operation pins the newest reported, so that old ones drain");
	pins_drop(&pins, first);
	cr_assert_eq(epoch_begin_report(&epoch, pins_oldest, &pins), 12);
	pins_drop(&pins, second);
	cr_assert_eq(atomic_load(&pins.oldest), PIN_NONE);
}

Test(epoch, pins_drop_out_of_order)
{
	struct epoch epoch;
	struct pins pins;
	uint64_t pinned[6];

	open_epoch(&epoch, &pins, 1);
	for (unsigned i = 0; i < 6; i++) {
		epoch_load_arrived(&epoch, &(struct load){.epoch = i + 2}, i + 1);
		if (i > 0)
			epoch_begin_report(&epoch, pins_oldest, &pins);
		cr_assert(pins_take(&pins, &epoch, &pinned[i]));
	}
	pins_drop(&pins, pinned[3]);
	cr_assert_eq(atomic_load(&pins.oldest), pinned[0]);
	pins_drop(&pins, pinned[0]);
	pins_drop(&pins, pinned[1]);
	pins_drop(&pins, pinned[2]);
	cr_assert_eq(atomic_load(&pins.oldest), pinned[4]);
	pins_drop(&pins, pinned[5]);
	pins_drop(&pins, pinned[4]);
	cr_assert_eq(atomic_load(&pins.oldest), PIN_NONE);
}

Test(epoch, no_idle_while_pinned_and_no_start_while_going_idle)
{
	struct epoch epoch;
	struct pins pins;
	uint64_t pinned, activation;

	open_epoch(&epoch, &pins, 10);
	activation = atomic_load(&epoch.activation);
	cr_assert(pins_take(&pins, &epoch, &pinned));
	epoch_confirm(&epoch, activation);
	cr_assert_not(epoch_try_idle(&epoch, pins_oldest, &pins));
	pins_drop(&pins, pinned);
	cr_assert(epoch_try_idle(&epoch, pins_oldest, &pins));
	cr_assert_not(pins_take(&pins, &epoch, &pinned));
	epoch_idle_done(&epoch);
	cr_assert(pins_take(&pins, &epoch, &pinned));
	cr_assert(epoch_needs_report(&epoch));
}

Test(epoch, stamps_of_an_earlier_activation_protect_nothing)
{
	struct epoch epoch;
	struct pins pins;
	uint64_t pinned, stamp;

	open_epoch(&epoch, &pins, 10);
	cr_assert(pins_take(&pins, &epoch, &pinned));
	stamp = epoch_stamp_now(&epoch);
	cr_assert_geq(stamp, epoch_stamp(atomic_load(&epoch.activation), pinned));
	epoch_confirm(&epoch, atomic_load(&epoch.activation));
	pins_drop(&pins, pinned);
	cr_assert(epoch_try_idle(&epoch, pins_oldest, &pins));
	epoch_idle_done(&epoch);
	cr_assert(pins_take(&pins, &epoch, &pinned));
	cr_assert_lt(stamp, epoch_stamp(atomic_load(&epoch.activation), pinned));
}
